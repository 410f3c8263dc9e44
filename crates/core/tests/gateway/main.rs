//! The gateway, packet by packet in virtual time.

mod blocked;
mod change;
mod congested;
mod ecn;
mod engine;
mod fast;
mod flows;
mod grant;
mod hostile;
mod idle;
mod lazy;
mod nested;
mod place;
mod places;
mod police;
mod postack;
mod random;
mod repeats;
mod rounds;
mod rules;
mod segments;
mod share;
mod steer;
mod support;
mod survive;
mod window;
