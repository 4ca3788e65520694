package architecture

import (
	"cmp"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var proseWord = regexp.MustCompile(`[A-Za-z']+`)

// pageWord is what is between spaces, but the lines of tables.
var pageWord = regexp.MustCompile(`[^\s|]*[^\s|-][^\s|]*`)

// prose counts words of comments and documents.
type prose struct {
	words   int
	watched map[string]int // by watched word
	files   map[string]int // watched words, by file
	pages   map[string]int // words and numbers of documents, by file
}

func (p *prose) add(file, text string) {
	for _, w := range proseWord.FindAllString(strings.ToLower(text), -1) {
		p.words++
		if slices.Contains(watchedWords, w) {
			p.watched[w]++
			p.files[file]++
		}
	}
}

// perTenThousand returns how many of 10,000 words are watched ones.
func (p *prose) perTenThousand() float64 {
	total := 0
	for _, n := range p.watched {
		total += n
	}
	return float64(total) * 10_000 / float64(max(p.words, 1))
}

// countProse counts the words of all comments, but those of generated files, and of all documents
// in Markdown but the change log.
func countProse(tree fs.FS, all []source) (*prose, error) {
	p := &prose{watched: map[string]int{}, files: map[string]int{}, pages: map[string]int{}}
	for _, s := range all {
		if s.isGenerated() {
			continue
		}
		for _, c := range s.tree.Comments {
			p.add(s.path, c.Text())
		}
	}
	return p, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isSkipped(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md" || name == "CHANGELOG.md":
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		p.add(name, string(text))
		p.pages[name] = len(pageWord.FindAllString(string(text), -1))
		return err
	})
}

// checkProse finds too many watched words, and names the files that have most of them.
func checkProse(p *prose, most float64) []violation {
	if p.perTenThousand() <= most {
		return nil
	}
	files := slices.SortedFunc(maps.Keys(p.files), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.files[b], p.files[a]), cmp.Compare(a, b))
	})
	words := slices.Sorted(maps.Keys(p.watched))
	for i, w := range words {
		words[i] = fmt.Sprintf("%s %d", w, p.watched[w])
	}
	return []violation{{
		strings.Join(files[:min(len(files), 5)], ", "),
		fmt.Sprintf("%.1f of 10,000 words are ones that plain technical English hardly uses (%s)", p.perTenThousand(),
			strings.Join(words, ", ")),
		fmt.Sprintf("at most %.1f; see Language in CONTRIBUTING.md", most),
	}}
}

// checkPages finds documents that are longer than they may be.
func checkPages(p *prose, most map[string]int) (found []violation) {
	for _, page := range slices.Sorted(maps.Keys(most)) {
		if p.pages[page] > most[page] {
			found = append(found, violation{
				page, fmt.Sprintf("has %d words", p.pages[page]), fmt.Sprintf("at most %d; what was measured before is history", most[page]),
			})
		}
	}
	return found
}

// checkPairs finds functions of one package, or methods of one type, whose names differ in case
// only.
func checkPairs(all []source) []violation {
	seen := map[string]string{} // by folder, receiver and lower case
	var found []violation
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		for _, d := range s.tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			key := s.dir() + " " + receiverName(f) + "." + strings.ToLower(f.Name.Name)
			if other := cmp.Or(seen[key], f.Name.Name); other != f.Name.Name {
				found = append(found, violation{
					s.position(f), fmt.Sprintf("%s differs from %s in case only", f.Name, other),
					"a name says what is different",
				})
			}
			seen[key] = f.Name.Name
		}
	}
	return found
}

// receiverName returns the name of the type of a method, and the empty text for a function.
func receiverName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}
