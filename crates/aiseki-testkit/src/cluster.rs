//! A three-node cluster of a test's own.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::redis::{Flavour, Redis, RedisOptions};
use crate::scratch::free_port;
use crate::wait::eventually_blocking;

const NODES: usize = 3;
const SLOTS: usize = 16_384;
const JOIN_DEADLINE: Duration = Duration::from_secs(30);

/// Three primaries that share the slots, without replicas.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Redis>,
}

impl Cluster {
    /// Starts the nodes and waits until each says that the cluster is whole.
    pub fn start(flavour: &Flavour) -> Result<Self> {
        let mut nodes = Vec::with_capacity(NODES);
        for _ in 0..NODES {
            // The bus has a port of its own; its default, the port plus 10,000, may not exist.
            let bus = free_port()?.to_string();
            let arguments = ["--cluster-enabled", "yes", "--cluster-port", &bus]
                .into_iter()
                .chain(["--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000"])
                .map(str::to_owned)
                .collect();
            let options =
                RedisOptions { flavour: flavour.clone(), arguments, ..RedisOptions::default() };
            nodes.push((Redis::with(options)?, bus));
        }
        for (index, (node, _)) in nodes.iter().enumerate() {
            let (from, to) = (index * SLOTS / NODES, (index + 1) * SLOTS / NODES - 1);
            node.command(&format!("CLUSTER ADDSLOTSRANGE {from} {to}"))?;
            let (first, bus) = &nodes[0];
            node.command(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", first.port()))?;
        }
        let nodes: Vec<Redis> = nodes.into_iter().map(|(node, _)| node).collect();
        let whole = eventually_blocking(JOIN_DEADLINE, || {
            nodes.iter().all(|node| {
                node.command("CLUSTER INFO").is_ok_and(|info| {
                    info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
                })
            })
        });
        ensure!(whole, "the cluster does not become whole");
        Ok(Self { nodes })
    }

    /// `redis-cluster://127.0.0.1:PORT,…`: every node.
    pub fn url(&self) -> String {
        let nodes: Vec<_> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }
}
