package each_test

import (
	"net/netip"
	"reflect"
	"strconv"
	"testing"

	"github.com/tollgate-dev/tollgate/core/each"
)

type word string

// TestMap checks that lists have what a function returns of each item, and are never nil.
func TestMap(t *testing.T) {
	numbers := []int{3, 1, 2}
	for what, c := range map[string]struct{ got, want any }{
		"Map":         {each.Map(numbers, strconv.Itoa), []string{"3", "1", "2"}},
		"Map, none":   {each.Map(nil, strconv.Itoa), []string{}},
		"MapRef":      {each.MapRef(numbers, func(n *int) *int { return n }), []*int{&numbers[0], &numbers[1], &numbers[2]}},
		"MapRef,none": {each.MapRef(nil, func(n *int) int { return *n }), []int{}},
		"Strings":     {each.Strings([]word{"a", "b"}), []string{"a", "b"}},
		"Texts":       {each.Texts([]netip.Addr{netip.IPv6Loopback()}), []string{"::1"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if each.MapRef(numbers, func(n *int) *int { return n })[0] != &numbers[0] {
		t.Error("MapRef copies its items")
	}
}
