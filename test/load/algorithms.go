package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// algorithmRules has a rule for each algorithm, whose name is the key.
func algorithmRules() []byte {
	text := []byte("domain: bench\ndescriptors:\n")
	for _, name := range ratelimit.AlgorithmNames() {
		text = fmt.Appendf(text,
			"  - {key: %s, rate_limit: {unit: hour, requests_per_unit: 4000000000, algorithm: %s}}\n", name, name)
	}
	return text
}

// compareAlgorithms compares the algorithms with each other, in the process and on Valkey: the
// first is the floor of the others.
func (d *deciders) compareAlgorithms() error {
	i, err := d.startAlone("algorithms", algorithmRules())
	if err != nil {
		return err
	}
	if err := d.addAlgorithms("in the process", i, nil); err != nil {
		return err
	}
	address := os.Getenv("TEST_VALKEY_URL")
	if address == "" {
		return nil // addOnValkey reports it
	}
	store, err := valkeyTime(address)
	if err != nil {
		return err
	}
	prefix := "CACHE_KEY_PREFIX=algorithms_" + strconv.FormatInt(time.Now().UnixNano(), 36) + "_"
	if i, err = d.startAlone("algorithms-valkey", algorithmRules(), "KVSTORE_URL="+address, prefix,
		"KVSTORE_TIMEOUT=10s"); err != nil {
		return err
	}
	return d.addAlgorithms("on Valkey", i, store)
}

// addAlgorithms adds a candidate for each algorithm.
func (d *deciders) addAlgorithms(where string, i *instance.Instance, store func() (time.Duration, error)) error {
	defer d.setDebugAddress(i)
	floors := []*candidate{d.floorGRPC}
	for _, name := range ratelimit.AlgorithmNames() {
		question := newQuestion(func(n int) []*common.RateLimitDescriptor {
			return []*common.RateLimitDescriptor{newDescriptor(name, "v"+strconv.Itoa(n))}
		})
		c, err := d.addGRPC("decision by "+name+", "+where, i, question, floors...)
		if err != nil {
			return err
		}
		if c.store = store; len(floors) == 1 {
			floors = append([]*candidate{c}, floors...)
		}
	}
	return nil
}
