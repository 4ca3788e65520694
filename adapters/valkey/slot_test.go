package valkey

import "testing"

// TestSlotOf checks slots that a server returns to CLUSTER KEYSLOT, with and without hash tags.
func TestSlotOf(t *testing.T) {
	for key, want := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "bar": 5061, "{foo}.x": 12182, "a{bar}b{foo}": 5061,
		"foo{}{bar}": 8363,
		"foo{bar":    15278, "foo{{bar}}zap": 4015, "v_4:shop8:customer3:ada/3600/1700000000/2": 10209,
	} {
		if got := slotOf(key); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}
