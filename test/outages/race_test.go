//go:build race

package outages

// raceDetector reports whether the tests, and so the binaries that they build,
// run with the race detector.
const raceDetector = true
