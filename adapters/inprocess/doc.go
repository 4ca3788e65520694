// Package inprocess answers what one hexagon asks of another, within the process: the throttle of the API from the rate
// limit core, the authority over the registry from authentication. It holds no rules of its own.
package inprocess
