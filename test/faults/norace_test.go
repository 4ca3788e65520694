//go:build !race

package faults

// raceDetector tells whether the tests, and so the binaries that they build,
// run with the race detector.
const raceDetector = false
