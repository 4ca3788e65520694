package publishing

import (
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// checkReserved returns fault.Forbidden for the name of a server that no one may publish
// (contract P-21).
func (p *Publisher) checkReserved(serverName string) error {
	name, bad := registry.ParseName(serverName) // the rules of documents refuse a bad name
	for _, reserved := range p.config.Reserved {
		if bad == nil && reserved.Matches(name) {
			return fault.Newf(fault.Forbidden, "%s is in the reserved namespace %s, in which nobody may publish",
				name, reserved)
		}
	}
	return nil
}
