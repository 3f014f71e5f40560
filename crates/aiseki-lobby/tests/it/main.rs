//! The rule, seen from outside: one module per part of the contract, and the simulation.

mod simulation;
