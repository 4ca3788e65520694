package person

import "testing"

// TestCountInvalid checks that the verb agrees with the number.
func TestCountInvalid(t *testing.T) {
	for want, n := range map[string][2]int{
		"the document is not valid": {1, 1}, "1 of 2 documents is not valid": {1, 2},
		"2 of 2 documents are not valid": {2, 2},
	} {
		if err := countInvalid(n[0], n[1]); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %q", n, err, want)
		}
	}
	if err := countInvalid(0, 1); err != nil {
		t.Error(err)
	}
}
