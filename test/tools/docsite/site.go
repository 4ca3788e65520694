package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	docsFolder = "docs/"
	index      = "README.md" // of a folder

	searchIndexFile = "search-index.js"
)

// rootPages are the pages outside of docs that are rendered too.
var rootPages = []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}

// folderTitles are the titles of the lists of pages in folders that have no index.
var folderTitles = map[string]string{"docs/adr": "Decisions", "docs/clients": "Clients"}

// site is the documentation.
type site struct {
	from, to, repository string
	Version              string
	pages                map[string]*page // by source
	copies               map[string][]byte
	menu                 []reader
}

func newSite() *site {
	return &site{
		repository: "https://github.com/tollgate-dev/tollgate", pages: map[string]*page{}, copies: map[string][]byte{},
	}
}

// read reads the pages, and the files that are copied.
func (s *site) read() error {
	for _, name := range rootPages {
		if err := s.readFile(name); err != nil {
			return err
		}
	}
	err := fs.WalkDir(os.DirFS(s.from), strings.TrimSuffix(docsFolder, "/"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return s.readFile(name)
	})
	if err != nil {
		return err
	}
	for _, folder := range s.foldersWithoutIndex() {
		s.addPage(path.Join(folder, index), s.listFolder(folder))
	}
	s.menu, err = s.readMenu()
	return err
}

func (s *site) readFile(name string) error {
	text, err := os.ReadFile(filepath.Join(s.from, name)) // #nosec G304 -- the caller names the folder
	if err != nil {
		return err
	}
	if path.Ext(name) != ".md" {
		s.copies[name] = text
		return nil
	}
	s.addPage(name, text)
	return nil
}

func (s *site) addPage(source string, text []byte) { s.pages[source] = parsePage(source, text) }

func (s *site) sources() []string { return slices.Sorted(maps.Keys(s.pages)) }

// foldersWithoutIndex returns the folders that have pages and no index.
func (s *site) foldersWithoutIndex() (folders []string) {
	for _, source := range s.sources() {
		if folder := path.Dir(source); s.pages[path.Join(folder, index)] == nil && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// listFolder returns a page in Markdown that lists the pages of a folder.
func (s *site) listFolder(folder string) []byte {
	list := "# " + cmp.Or(folderTitles[folder], path.Base(folder)) + "\n"
	for _, source := range s.sources() {
		if path.Dir(source) == folder {
			list += "\n- [" + s.pages[source].Title + "](" + path.Base(source) + ")"
		}
	}
	return []byte(list)
}

// addressOf returns where a page or a file of docs is in the site.
func addressOf(source string) string {
	address, inDocs := strings.CutPrefix(source, docsFolder)
	if !inDocs {
		address = "project/" + source
	}
	folder, file := path.Split(address)
	switch {
	case file == index:
		return folder + "index.html"
	case path.Ext(file) == ".md":
		return folder + strings.TrimSuffix(file, ".md") + ".html"
	}
	return address
}

// relative returns the link from one address of the site to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// view is what the template shows.
type view struct {
	*page
	Site    *site
	Menu    []reader
	Content template.HTML
	Root    string // the link to the root of the site
	Source  string // the link to the source of the page
}

// render returns all files of the site by address. Its error names every link that leads nowhere.
func (s *site) render() (map[string][]byte, error) {
	files := map[string][]byte{"style.css": style, "search.js": script}
	for source, text := range s.copies {
		files[addressOf(source)] = text
	}
	var broken []error
	for _, source := range s.sources() {
		p := s.pages[source]
		broken = append(broken, s.resolveLinks(p)...)
		var content, all bytes.Buffer
		if err := markdown.Renderer().Render(&content, p.text, p.document); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		v := view{
			p, s, s.menuOf(p), template.HTML(content.String()), // #nosec G203 -- it is our own
			relative(p.Address, ""), s.repository + "/blob/main/" + source,
		}
		if err := layout.Execute(&all, v); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		files[p.Address] = all.Bytes()
	}
	var err error
	if files[searchIndexFile], err = s.searchIndex(); err != nil {
		return nil, err
	}
	return files, errors.Join(broken...)
}

// write writes the files, in place of an earlier site in the folder. It removes nothing else.
func (s *site) write(files map[string][]byte) error {
	if found, err := os.ReadDir(s.to); err == nil && len(found) > 0 {
		if _, err := os.Stat(filepath.Join(s.to, searchIndexFile)); err != nil {
			return fmt.Errorf("-to: the folder %s has files that are no earlier site", s.to)
		}
	}
	if err := os.RemoveAll(s.to); err != nil {
		return err
	}
	for address, content := range files {
		name := filepath.Join(s.to, address)
		// #nosec G301 -- the files are public
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		// #nosec G306 -- the files are public
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
