package registryrecords

import (
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// FarRows is how many rows a page reads at most in its order.
const FarRows = farRows

// AlwaysUseIndexes makes searches of small registries use the index that searches of large ones
// use.
func (s *Servers) AlwaysUseIndexes() { s.near = 0 }

// FewRows is how many rows of another index a page reads at most.
const FewRows = fewRows

// NameFilter returns the condition of nameFilter with its arguments in the text.
func NameFilter(column string, ranges []registry.NameRange) string {
	c := nameFilter(column, ranges)
	for _, a := range c.args {
		c.text = strings.Replace(c.text, "?", fmt.Sprintf("'%v'", a), 1)
	}
	return c.text
}
