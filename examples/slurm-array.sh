#!/bin/sh
# A sweep as an array job of SLURM: each task makes one part of the runs.
#
#   sbatch --array=1-100 slurm-array.sh experiment.toml /shared/results 10
#   weir merge experiment.toml --store /shared/results --seeds 10 --json sweep.json
#
# Arguments: the experiment, the folder of results, and the number of seeds. A task that was lost is submitted
# again with WEIR_PARTS=100 and --array=17: runs that are there are not made again.
#SBATCH --job-name=weir
#SBATCH --cpus-per-task=1
set -eu
: "${SLURM_ARRAY_TASK_ID:?submit it with sbatch --array=1-N}"
exec weir sweep "$1" --store "$2" --seeds "${3:-1}" --jobs "${SLURM_CPUS_PER_TASK:-1}" \
    --shard "$SLURM_ARRAY_TASK_ID/${WEIR_PARTS:-${SLURM_ARRAY_TASK_MAX:?}}"
