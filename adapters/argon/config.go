package argon

import (
	"errors"
	"fmt"
)

// Config contains the settings of password hashing (contract A-12).
type Config struct {
	MemoryKiB   uint32 `env:"ARGON2_MEMORY_KIB" envDefault:"19456" desc:"memory of one password hash in KiB, 8 to 1048576"`
	Iterations  uint32 `env:"ARGON2_ITERATIONS" envDefault:"2" desc:"passes over the memory of one password hash, 1 to 64"`
	Parallelism uint8  `env:"-"` // lanes of one password hash; 0 means 1
	Queue       int    `env:"-"` // how many hashes may wait for a core
}

// Bounds of the parameters, in the settings and in stored hashes.
const (
	maxMemoryKiB   = 1 << 20
	maxIterations  = 64
	maxParallelism = 16
)

// Validate returns an error that names the variable whose value is out of range.
func (c Config) Validate() error { return c.hashParameters().validateCosts() }

func (c Config) hashParameters() parameters {
	return parameters{memory: c.MemoryKiB, iterations: c.Iterations, parallelism: max(c.Parallelism, 1)}
}

// parameters contains the costs of Argon2id.
type parameters struct {
	memory      uint32 // KiB
	iterations  uint32
	parallelism uint8
}

func (p parameters) validateCosts() error {
	switch {
	case p.iterations < 1 || p.iterations > maxIterations:
		return fmt.Errorf("ARGON2_ITERATIONS is %d, it must be from 1 to %d", p.iterations, maxIterations)
	case p.parallelism < 1 || p.parallelism > maxParallelism:
		return fmt.Errorf("the parallelism is %d, it must be from 1 to %d", p.parallelism, maxParallelism)
	case p.memory > maxMemoryKiB:
		return fmt.Errorf("ARGON2_MEMORY_KIB is %d, it must be at most %d", p.memory, maxMemoryKiB)
	case p.memory < 8*uint32(p.parallelism):
		return errors.New("ARGON2_MEMORY_KIB must be at least 8")
	}
	return nil
}

// isWeakerThan reports whether any cost of p is lower than that of q.
func (p parameters) isWeakerThan(q parameters) bool {
	return p.memory < q.memory || p.iterations < q.iterations || p.parallelism < q.parallelism
}

// workFactor returns the cost of a hash: the KiB that its passes fill.
func (p parameters) workFactor() uint64 { return uint64(p.memory) * uint64(p.iterations) }

// remainingWork returns hashes that together cost about the difference between a hash with q and
// one with p, or nothing if p costs as much. Each of them needs no more memory than a hash with q.
func (p parameters) remainingWork(q parameters) []parameters {
	if p.workFactor() >= q.workFactor() {
		return nil
	}
	missing := q.workFactor() - p.workFactor()
	passes, rest := missing/uint64(q.memory), missing%uint64(q.memory)
	var hashes []parameters
	if passes > 0 {
		hashes = append(hashes, parameters{q.memory, uint32(passes), q.parallelism}) // at most q.iterations
	}
	if least := 8 * uint64(q.parallelism); rest >= least { // the minimum memory of a hash
		hashes = append(hashes, parameters{uint32(rest), 1, q.parallelism}) // less than q.memory
	}
	return hashes
}
