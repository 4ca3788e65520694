package architecture

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// importsOf returns the folders of this module that each folder's production code imports, sorted.
func importsOf(all []source) map[string][]string {
	imports := map[string][]string{}
	for _, s := range all {
		if s.isTest() || isTestCode(s.dir()) {
			continue
		}
		for _, spec := range s.tree.Imports {
			name, _ := strconv.Unquote(spec.Path.Value) // the parser accepts nothing else
			if to, ours := strings.CutPrefix(name, module+"/"); ours {
				imports[s.dir()] = append(imports[s.dir()], to)
			}
		}
	}
	for from, to := range imports {
		slices.Sort(to)
		imports[from] = slices.Compact(to)
	}
	return imports
}

// longestChain returns the most packages that import each other in a row.
func longestChain(imports map[string][]string) int {
	lengths := map[string]int{}
	var from func(dir string) int
	from = func(dir string) int {
		if lengths[dir] == 0 {
			most := 0
			for _, to := range imports[dir] {
				most = max(most, from(to))
			}
			lengths[dir] = most + 1
		}
		return lengths[dir]
	}
	most := 0
	for dir := range imports {
		most = max(most, from(dir))
	}
	return most
}

// checkUseCases finds use cases that import a use case without being allowed to, and permissions that
// are not used. All use cases may import the shared folders of their hexagon, which import no use case.
func checkUseCases(all []source, shared []string, allowed map[string][]string) []violation {
	var found []violation
	imports := importsOf(all)
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		if locationOf(from).ring != useCase {
			continue
		}
		for _, to := range imports[from] {
			free := slices.Contains(shared, to) && !slices.Contains(shared, from)
			if locationOf(to).ring == useCase && !free && !slices.Contains(allowed[from], to) {
				found = append(found, violation{
					from, "imports the use case " + to, "move what both need one floor down, or list it in useCaseImports",
				})
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(allowed)) {
		for _, to := range allowed[from] {
			if !slices.Contains(imports[from], to) {
				found = append(found, violation{from, "does not import " + to, "remove it from useCaseImports"})
			}
		}
	}
	return found
}
