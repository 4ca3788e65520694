package architecture

import (
	"slices"
	"strconv"
	"strings"
)

// place is where a folder stands. The family is the hexagon, the adapter's technology, or the folder itself.
type place struct {
	ring   ring
	family string
}

// locate finds the place of a folder below the root.
func locate(dir string) place {
	parts := strings.Split(dir, "/")
	if len(parts) < 2 && parts[0] != "wiring" {
		return place{ring: nowhere, family: dir}
	}
	switch parts[0] {
	case "core":
		return place{ring: coreRing(dir, len(parts)), family: parts[1]}
	case "ports":
		return place{ring: portRing(parts), family: parts[1]}
	case "adapters":
		return place{ring: adapterRing(dir), family: parts[1]}
	case "plugins":
		return place{ring: pluginRing(dir), family: dir}
	case "wiring":
		return place{ring: wiring, family: "wiring"}
	case "cmd":
		return place{ring: command, family: parts[1]}
	case "test":
		return place{ring: spanning, family: parts[1]}
	case "docs":
		return place{ring: example, family: dir}
	}
	return place{ring: nowhere, family: dir}
}

func coreRing(dir string, depth int) ring {
	switch {
	case within(dir, kernelPackages):
		return kernel
	case depth == 2 || within(dir, pureParts):
		return model
	}
	return useCase
}

// portRing: a suite lies below its port and is named after it, as net/http/httptest is.
func portRing(parts []string) ring {
	if len(parts) > 2 && strings.HasSuffix(parts[len(parts)-1], "test") {
		return contract
	}
	return port
}

func adapterRing(dir string) ring {
	switch {
	case within(dir, testBinaries):
		return pluginBinary
	case within(dir, drivingAdapters):
		return driving
	case within(dir, sharedParts):
		return part
	case within(dir, bridgeAdapters):
		return bridge
	}
	return driven
}

func pluginRing(dir string) ring {
	if within(dir, sdkPackages) {
		return sdk
	}
	for _, prefix := range binaryPrefixes {
		if strings.HasPrefix(dir, prefix) {
			return pluginBinary
		}
	}
	return protocol
}

// within reports whether the folder is one of the roots or lies below one.
func within(dir string, roots []string) bool { return rootOf(dir, roots) != "" }

func rootOf(dir string, roots []string) string {
	for _, r := range roots {
		if dir == r || strings.HasPrefix(dir, r+"/") {
			return r
		}
	}
	return ""
}

// checkRings finds the imports that run outwards or sideways.
func checkRings(all []source) []complaint {
	var found []complaint
	for _, s := range all {
		if s.isTest() {
			continue
		}
		from := s.dir()
		if locate(from).ring == nowhere {
			found = append(found, complaint{s.path, "the folder " + from + " belongs to no ring", "add it to the table or move it"})
			continue
		}
		for _, spec := range s.tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				name = spec.Path.Value
			}
			if rule := forbidden(from, name); rule != "" {
				found = append(found, complaint{s.at(spec), "imports " + name, rule})
			}
		}
	}
	return found
}

// forbidden says which rule keeps the folder from importing the package; empty when none does.
func forbidden(from, imported string) string {
	switch below, ours := strings.CutPrefix(imported, module+"/"); {
	case ours:
		return forbiddenRing(from, below)
	case isStandard(imported):
		return forbiddenStandard(from, imported)
	default:
		return forbiddenModule(from, imported)
	}
}

func forbiddenRing(from, to string) string {
	if from == to {
		return ""
	}
	a, b := locate(from), locate(to)
	switch {
	case !slices.Contains(mayImport[a.ring], b.ring):
		return "a " + string(a.ring) + " may not import a " + string(b.ring)
	case a.family != b.family && slices.Contains(withinFamily[a.ring], b.ring):
		return "a " + string(a.ring) + " of " + a.family + " may not import a " + string(b.ring) + " of " + b.family
	case within(from, independentFolders) && within(to, independentFolders) && rootOf(from, independentFolders) != rootOf(to, independentFolders):
		return "these folders of one adapter are independent and may not import each other"
	}
	return ""
}

func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// isPure tells which rings do no I/O and have no clock and no dice.
func isPure(r ring) bool { return r == kernel || r == model || r == useCase || r == port }

func forbiddenStandard(from, imported string) string {
	r := locate(from).ring
	if r == contract && within(imported, []string{"testing"}) {
		return ""
	}
	if !isPure(r) && r != contract || !within(imported, impure) || within(imported, pureBelowImpure) {
		return ""
	}
	return "a " + string(r) + " does no I/O, keeps no time and rolls no dice; ask a port"
}

func forbiddenModule(from, imported string) string {
	r := locate(from).ring
	switch {
	case within(imported, pureModules), !isPure(r) && r != contract:
		return ""
	case r == contract && within(imported, suiteModules):
		return ""
	}
	return "a " + string(r) + " may import of other modules only what the table lists as pure"
}
