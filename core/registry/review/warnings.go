package review

import (
	"fmt"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Warnings returns what a reviewer must look at in a document although the checks of its packages
// passed: arguments that come before the checked package, so that the command may start something
// else. It returns fault.Invalid if the document is not a JSON object.
func Warnings(document []byte) ([]string, error) {
	root, err := readObject(document)
	if err != nil {
		return nil, err
	}
	var all []string
	for i, p := range root.Objects("packages") {
		for j, argument := range p.Objects("runtimeArguments") {
			if text := describeArgument(argument); text != "" {
				all = append(all,
					fmt.Sprintf("packages[%d].runtimeArguments[%d]: %s comes before the package %s, so the command may start something else",
						i, j, text, p.Text("identifier")))
			}
		}
	}
	return all, nil
}

// describeArgument returns an argument as it is in a command; empty for one without a name and a
// value.
func describeArgument(argument jsonvalue.Object) string {
	value := argument.Text("value")
	for _, other := range []string{"default", "valueHint"} {
		if value == "" {
			value = argument.Text(other)
		}
	}
	switch name := argument.Text("name"); {
	case argument.Text("type") == "named" && name != "" && value != "":
		return fmt.Sprintf("%q", name+" "+value)
	case argument.Text("type") == "named" && name != "":
		return fmt.Sprintf("%q", name)
	case value != "":
		return fmt.Sprintf("%q", value)
	}
	return ""
}
