use super::*;
use weir_core::time::Duration;

#[test]
fn loads() {
    let acks = Acks::load(&AcksOptions::new(100)).unwrap();
    assert_eq!(acks.slots().len(), 100);
    All::load(Duration::from_millis(50), true).unwrap();
}
