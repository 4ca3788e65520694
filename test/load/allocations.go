package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// allocationsPath is where a process says how often it has allocated memory: in the comments below the
// profile of its heap, or in a floor alone.
const allocationsPath = "/debug/pprof/heap?debug=1"

// readAllocations returns how often a process has allocated memory.
func readAllocations(address string) (uint64, error) {
	resp, err := http.Get(address)
	if err != nil {
		return 0, fmt.Errorf("read allocations: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing else is read
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "# Mallocs = "); ok {
			return strconv.ParseUint(text, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s does not say how often the process has allocated memory", address)
}

// countAllocations stores how often the process allocates memory for one call. The process itself
// allocates some to say so, which is measured and left out.
func (c *candidate) countAllocations() error {
	const calls = 10_000
	if c.allocations == nil {
		return nil
	}
	var counts [3]uint64
	for i := range counts {
		for n := 0; n < calls && i == 1; n++ {
			if err := c.call(n, n); err != nil {
				return err
			}
		}
		var err error
		if counts[i], err = c.allocations(); err != nil {
			return err
		}
	}
	c.each = float64(counts[1]-counts[0]-(counts[2]-counts[1])) / calls
	return nil
}
