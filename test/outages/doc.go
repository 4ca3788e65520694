// Package outages tests the service while its dependencies fail or change: the counter store and
// the database are killed, frozen, failed over or rearranged, the rules reload, the service stops.
// It runs the real binary with servers that belong to the tests. The tests of the service without
// faults are in test/acceptance.
package outages
