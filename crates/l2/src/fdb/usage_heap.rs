//! A binary heap of ports by their number of learned stations. The order of ports with equal numbers
//! depends on the history only, as in Open vSwitch, so the heap yields the same port as there.

use std::collections::BTreeMap;

use base::PortNo;

/// A heap with the largest port at its root.
#[derive(Debug, Default)]
pub(super) struct UsageHeap {
    /// The number of stations and the port of each node; a child's number is at most its parent's.
    nodes: Vec<(usize, PortNo)>,
    /// The index of each port's node.
    indexes: BTreeMap<PortNo, usize>,
}

impl UsageHeap {
    /// Returns a port with the most stations; none if no port has any.
    pub(super) fn largest(&self) -> Option<PortNo> {
        self.nodes.first().map(|(_, port)| *port)
    }

    /// Sets the number of stations of a port.
    pub(super) fn set(&mut self, port: PortNo, stations: usize) {
        match self.indexes.get(&port).copied() {
            None if stations == 0 => {}
            None => {
                let index = self.nodes.len();
                self.nodes.push((stations, port));
                self.indexes.insert(port, index);
                self.move_up(index);
            }
            Some(index) if stations == 0 => self.remove(index),
            Some(index) => {
                self.nodes[index].0 = stations;
                let index = self.move_up(index);
                self.move_down(index);
            }
        }
    }

    fn remove(&mut self, index: usize) {
        self.swap(index, self.nodes.len() - 1);
        if let Some((_, port)) = self.nodes.pop() {
            self.indexes.remove(&port);
        }
        if index < self.nodes.len() {
            let index = self.move_up(index);
            self.move_down(index);
        }
    }

    /// Moves a node towards the root. Returns its new index.
    fn move_up(&mut self, mut index: usize) -> usize {
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.nodes[parent].0 >= self.nodes[index].0 {
                break;
            }
            self.swap(parent, index);
            index = parent;
        }
        index
    }

    /// Moves a node towards the leaves.
    fn move_down(&mut self, mut index: usize) {
        loop {
            let mut largest = index;
            for child in [2 * index + 1, 2 * index + 2] {
                let stations = self.nodes.get(child).map_or(0, |(stations, _)| *stations);
                if stations > self.nodes[largest].0 {
                    largest = child;
                }
            }
            if largest == index {
                return;
            }
            self.swap(largest, index);
            index = largest;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.nodes.swap(one, other);
        for index in [one, other] {
            self.indexes.insert(self.nodes[index].1, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_heap_yields_a_port_with_the_most_stations() {
        let mut heap = UsageHeap::default();
        let mut counts = BTreeMap::new();
        assert_eq!(heap.largest(), None);
        let mut seed = 7_u32;
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let port = PortNo(seed >> 16 & 15);
            let stations = (seed >> 20 & 7) as usize;
            heap.set(port, stations);
            counts.insert(port, stations);
            let most = counts.values().copied().max().filter(|most| *most > 0);
            let largest = heap.largest();
            assert_eq!(largest.map(|port| counts[&port]), most);
            let present = counts.values().filter(|stations| **stations > 0);
            assert_eq!(heap.nodes.len(), present.count());
            assert_eq!(heap.indexes.len(), heap.nodes.len());
        }
    }
}
