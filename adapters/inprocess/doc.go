// Package inprocess connects hexagons within the process: the throttle of the API uses the rate
// limit core, and the authority of the registry uses authentication. It contains no rules of its
// own.
package inprocess
