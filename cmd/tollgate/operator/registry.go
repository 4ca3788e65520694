package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
)

func newRegistry(p cli.Process) *cobra.Command {
	return cli.NewGroup("registry", "Validate documents, import or export whole registries, and hide servers",
		person.NewValidate(p), newRegistryImport(p), newRegistryExport(p), newRegistryQuarantine(p),
		newRegistryRelease(p))
}
