// Package faults shows what the rate limit service does while what it depends on fails or changes: its store killed,
// frozen, failed over, rearranged; its rules reloaded; itself told to stop. It runs the real binary beside servers of its
// own and looks from outside. What the service answers in peace is for test/acceptance.
package faults
