package architecture

import (
	"slices"
	"strconv"
	"strings"
)

// location is the ring of a folder and its family: the hexagon, the adapter's technology, or the
// folder itself.
type location struct {
	ring   ring
	family string
}

// locationOf returns the location of a folder below the root.
func locationOf(dir string) location {
	parts := strings.Split(dir, "/")
	if dir == guides {
		return location{ring: part, family: dir}
	}
	if len(parts) < 2 && parts[0] != "wiring" {
		return location{ring: unknownRing, family: dir}
	}
	switch parts[0] {
	case "core":
		return location{ring: coreRing(dir, len(parts)), family: parts[1]}
	case "ports":
		return location{ring: portRing(parts), family: parts[1]}
	case "adapters":
		return location{ring: adapterRing(dir), family: parts[1]}
	case "plugins":
		return location{ring: pluginRing(dir), family: dir}
	case "wiring":
		return location{ring: wiring, family: "wiring"}
	case "cmd":
		return location{ring: command, family: parts[1]}
	case "test":
		if isBelow(dir, waitingTests) {
			return location{ring: waiting, family: parts[1]}
		}
		return location{ring: spanning, family: parts[1]}
	case "docs":
		return location{ring: example, family: dir}
	}
	return location{ring: unknownRing, family: dir}
}

func coreRing(dir string, depth int) ring {
	switch {
	case isBelow(dir, kernelPackages):
		return kernel
	case isBelow(dir, sharedUseCases):
		return managing
	case depth == 2 || isBelow(dir, pureParts):
		return model
	}
	return useCase
}

// portRing returns the ring of a folder of ports. A contract suite is below its port and has its
// name with the suffix "test", like net/http/httptest.
func portRing(parts []string) ring {
	if len(parts) > 2 && strings.HasSuffix(parts[len(parts)-1], "test") {
		return contract
	}
	return port
}

func adapterRing(dir string) ring {
	switch {
	case isBelow(dir, drivingAdapters):
		return driving
	case isBelow(dir, sharedParts):
		return part
	case isBelow(dir, bridgeAdapters):
		return bridge
	}
	return driven
}

func pluginRing(dir string) ring {
	if isBelow(dir, sdkPackages) && !isBelow(dir, sdkParts) {
		return sdk
	}
	for _, prefix := range binaryPrefixes {
		if strings.HasPrefix(dir, prefix) {
			return pluginBinary
		}
	}
	return protocol
}

// isBelow reports whether the folder is one of the roots or below one.
func isBelow(dir string, roots []string) bool { return rootOf(dir, roots) != "" }

func rootOf(dir string, roots []string) string {
	for _, r := range roots {
		if dir == r || strings.HasPrefix(dir, r+"/") {
			return r
		}
	}
	return ""
}

// isTestCode reports whether the packages of a folder are for tests alone: contract suites, those
// for the tests of one adapter, and those below test.
func isTestCode(dir string) bool {
	return strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, "test/")
}

// checkRings finds the imports that point outwards or sideways.
func checkRings(all []source) []violation {
	var found []violation
	for _, s := range all {
		if s.isTest() {
			continue
		}
		from := s.dir()
		if locationOf(from).ring == unknownRing {
			found = append(found, violation{
				s.path, "the folder " + from + " belongs to no ring", "add it to the table or move it",
			})
			continue
		}
		for _, spec := range s.tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				name = spec.Path.Value
			}
			if rule := violatedRule(from, name); rule != "" {
				found = append(found, violation{s.position(spec), "imports " + name, rule})
			}
		}
	}
	return found
}

// violatedRule returns the rule that forbids the folder to import the package, or the empty text if
// the import is allowed.
func violatedRule(from, imported string) string {
	switch below, ours := strings.CutPrefix(imported, module+"/"); {
	case ours:
		return violatedRingRule(from, below)
	case isStandard(imported):
		return violatedStandardRule(from, imported)
	default:
		return violatedModuleRule(from, imported)
	}
}

func violatedRingRule(from, to string) string {
	if from == to {
		return ""
	}
	a, b := locationOf(from), locationOf(to)
	switch {
	case b.ring == waiting && isTestCode(from):
		return ""
	case !slices.Contains(mayImport[a.ring], b.ring):
		return "a " + string(a.ring) + " may not import a " + string(b.ring)
	case a.family != b.family && slices.Contains(withinFamily[a.ring], b.ring):
		return "a " + string(a.ring) + " of " + a.family + " may not import a " + string(b.ring) + " of " + b.family
	case isBelow(from, independentFolders) && isBelow(to, independentFolders) &&
		rootOf(from, independentFolders) != rootOf(to, independentFolders):
		return "these folders of one adapter are independent and may not import each other"
	case b.ring == model && isBelow(from, withoutHexagon):
		return "this folder serves all hexagons and may not import a " + string(b.ring)
	}
	return ""
}

func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// isPure reports whether code of the ring must not use I/O, the clock or randomness.
func isPure(r ring) bool {
	return r == kernel || r == model || r == useCase || r == managing || r == port
}

func violatedStandardRule(from, imported string) string {
	r := locationOf(from).ring
	if r == contract && isBelow(imported, []string{"testing"}) {
		return ""
	}
	if !isPure(r) && r != contract || !isBelow(imported, impure) || isBelow(imported, pureBelowImpure) {
		return ""
	}
	return "a " + string(r) + " must not use I/O, the clock or randomness; use a port"
}

func violatedModuleRule(from, imported string) string {
	r := locationOf(from).ring
	switch {
	case isBelow(imported, pureModules), !isPure(r) && r != contract:
		return ""
	case r == contract && isBelow(imported, suiteModules):
		return ""
	}
	return "a " + string(r) + " may import only those packages of other modules that the table lists as pure"
}
