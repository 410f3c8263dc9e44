//! The world: nodes, their wiring and the event core that drives them.
