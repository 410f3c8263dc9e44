//! A network described in a file, of nodes and links between them.

use weir_core::link;

/// Nodes and links in the order of the file. Every node can be reached from every other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Routers and gateways.
    pub nodes: Vec<GraphNode>,
    /// Links between the nodes, at most one for each pair.
    pub links: Vec<GraphLink>,
}

/// Node that forwards frames towards their destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Name of the node.
    pub name: String,
    /// Number of the neighbour on the WAN side, if the node is a gateway. All other neighbours are on its LAN
    /// side. `None` for a router.
    pub wan: Option<usize>,
}

/// Link between two nodes, identified by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphLink {
    /// Name of the link; results add `.out` and `.back`.
    pub name: String,
    /// First and second end.
    pub ends: [usize; 2],
    /// Link from the first end to the second.
    pub out: link::Config,
    /// Link from the second end to the first.
    pub back: link::Config,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number of the link.
    pub link: usize,
    /// True if the direction is from its second end to its first.
    pub back: bool,
}

impl Graph {
    /// Returns the links at a node, as outgoing hops, with the nodes that they lead to.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = (Hop, usize)> + '_ {
        self.links.iter().enumerate().filter_map(move |(link, l)| match l.ends {
            [from, to] if from == node => Some((Hop { link, back: false }, to)),
            [to, from] if from == node => Some((Hop { link, back: true }, to)),
            _ => None,
        })
    }

    /// Returns the first hop from each node towards `to`, on the path with the fewest links. Among paths of
    /// equal length, the one whose first link comes first in the file is taken. `None` at `to` itself and
    /// where there is no path.
    pub fn routes_to(&self, to: usize) -> Vec<Option<Hop>> {
        let mut distance = vec![usize::MAX; self.nodes.len()];
        distance[to] = 0;
        let mut reached = vec![to];
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            for (_, other) in self.neighbours(node) {
                if distance[other] == usize::MAX {
                    distance[other] = distance[node] + 1;
                    reached.push(other);
                }
            }
        }
        let closer = |node: usize| {
            let mut hops = self.neighbours(node).filter(|&(_, other)| distance[other] < distance[node]);
            hops.next().map(|(hop, _)| hop)
        };
        (0..self.nodes.len()).map(closer).collect()
    }

    /// Returns whether traffic between these nodes passes to the WAN side of a gateway.
    pub fn leaves_a_lan(&self, from: usize, to: usize) -> bool {
        let routes = self.routes_to(to);
        let next = |node: usize| {
            let hop = routes[node]?;
            Some(self.links[hop.link].ends[usize::from(!hop.back)])
        };
        core::iter::successors(Some(from), |&node| next(node))
            .any(|node| next(node).is_some_and(|after| self.nodes[node].wan == Some(after)))
    }

    /// Returns each direction of each link, with its name in results.
    pub fn directions(&self) -> impl Iterator<Item = (String, &link::Config)> {
        let both =
            |l: &'_ GraphLink| [(format!("{}.out", l.name), false), (format!("{}.back", l.name), true)];
        self.links
            .iter()
            .flat_map(move |l| both(l).map(|(name, back)| (name, if back { &l.back } else { &l.out })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, links: &[[usize; 2]]) -> Graph {
        let bare = link::Config::BARE;
        let node = |n: usize| GraphNode { name: format!("n{n}"), wan: None };
        let link = |&ends: &[usize; 2]| GraphLink { name: String::new(), ends, out: bare, back: bare };
        Graph { nodes: (0..nodes).map(node).collect(), links: links.iter().map(link).collect() }
    }

    fn hop(link: usize, back: bool) -> Option<Hop> {
        Some(Hop { link, back })
    }

    #[test]
    fn routes_take_the_fewest_links_and_of_those_the_first() {
        // A square with a tail: 0-1, 1-2, 0-3, 3-2 and 2-4. Both paths from 0 to 2 have the same length.
        let g = graph(5, &[[0, 1], [1, 2], [0, 3], [3, 2], [2, 4]]);
        let want = [hop(0, false), hop(1, false), hop(4, false), hop(3, false), None];
        assert_eq!(g.routes_to(4), want);
        assert_eq!(g.routes_to(0), [None, hop(0, true), hop(1, true), hop(2, true), hop(4, true)]);
        // With the links in another order, the other path is taken.
        let g = graph(5, &[[0, 3], [3, 2], [0, 1], [1, 2], [2, 4]]);
        assert_eq!(g.routes_to(4)[0], hop(0, false));
    }

    #[test]
    fn a_lan_is_left_by_its_gateway_s_link_to_the_wan() {
        // The chain 0-1-2-3, in which node 1 is a gateway whose WAN is 2.
        let mut g = graph(4, &[[0, 1], [2, 1], [2, 3]]);
        g.nodes[1].wan = Some(2);
        let leaves =
            |ways: &[(usize, usize)]| ways.iter().map(|&(a, b)| g.leaves_a_lan(a, b)).collect::<Vec<_>>();
        assert_eq!(leaves(&[(0, 3), (1, 2), (0, 2)]), [true; 3]);
        assert_eq!(leaves(&[(3, 0), (0, 1), (2, 3), (1, 1)]), [false; 4]);
    }

    #[test]
    fn there_is_no_way_to_an_island() {
        let g = graph(3, &[[0, 1]]);
        assert_eq!(g.routes_to(2), [None, None, None]);
        assert_eq!(g.routes_to(0), [None, hop(0, true), None]);
    }
}
