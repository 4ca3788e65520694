package review

import "fmt"

// Warnings returns what a reviewer must look at in a document although the checks of its packages
// passed: arguments that come before the checked package, so that the command may start something else.
// It returns fault.Invalid if the document is not a JSON object.
func Warnings(document []byte) ([]string, error) {
	root, err := readObject(document)
	if err != nil {
		return nil, err
	}
	var all []string
	for i, p := range root.objects("packages") {
		for j, argument := range p.objects("runtimeArguments") {
			if text := describeArgument(argument); text != "" {
				all = append(all, fmt.Sprintf("packages[%d].runtimeArguments[%d]: %s comes before the package %s, so the command may start something else",
					i, j, text, p.text("identifier")))
			}
		}
	}
	return all, nil
}

// describeArgument returns an argument as it is in a command; empty for one without a name and a value.
func describeArgument(argument object) string {
	value := argument.text("value")
	for _, other := range []string{"default", "valueHint"} {
		if value == "" {
			value = argument.text(other)
		}
	}
	switch name := argument.text("name"); {
	case argument.text("type") == "named" && name != "" && value != "":
		return fmt.Sprintf("%q", name+" "+value)
	case argument.text("type") == "named" && name != "":
		return fmt.Sprintf("%q", name)
	case value != "":
		return fmt.Sprintf("%q", value)
	}
	return ""
}
