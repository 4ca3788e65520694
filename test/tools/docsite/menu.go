package main

import (
	"errors"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// reader is a part of the menu: the pages for somebody, by kind.
type reader struct {
	Name  string
	Kinds []kind
	Open  bool // the page that is shown is one of them
}

// kind is what pages are for, for example to do something.
type kind struct {
	Name  string
	Links []menuLink
}

type menuLink struct {
	Text, Address string
	Current       bool

	written string // as it is in the table
}

// readMenu reads the table of docs/README.md.
func (s *site) readMenu() ([]reader, error) {
	p := s.pages[docsFolder+index]
	if p == nil {
		return nil, errors.New(docsFolder + index + " is missing")
	}
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		if table, ok := n.(*extast.Table); ok {
			return readTable(table, p.text), nil
		}
	}
	return nil, errors.New(docsFolder + index + " has no table of readers")
}

// readTable reads a table whose columns are kinds and whose rows are readers.
func readTable(table *extast.Table, source []byte) (menu []reader) {
	var kinds []string
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		r := reader{}
		column := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			name := textOf(cell, source)
			_, header := row.(*extast.TableHeader)
			switch {
			case header:
				kinds = append(kinds, name)
			case column == 0:
				r.Name = name
			case column < len(kinds):
				r.Kinds = append(r.Kinds, kind{kinds[column], linksOf(cell, source)})
			}
			column++
		}
		if r.Name != "" {
			menu = append(menu, r)
		}
	}
	return menu
}

// linksOf returns the links in a cell.
func linksOf(cell ast.Node, source []byte) (links []menuLink) {
	for n := cell.FirstChild(); n != nil; n = n.NextSibling() {
		if link, ok := n.(*ast.Link); ok {
			text := textOf(link, source)
			links = append(links, menuLink{Text: strings.ToUpper(text[:1]) + text[1:], written: string(link.Destination)})
		}
	}
	return links
}

// menuOf returns the menu as a page shows it.
func (s *site) menuOf(p *page) []reader {
	menu := make([]reader, len(s.menu))
	table := s.pages[docsFolder+index]
	for i, r := range s.menu {
		menu[i] = reader{Name: r.Name}
		for _, k := range r.Kinds {
			shown := kind{Name: k.Name}
			for _, l := range k.Links {
				// A broken link is reported for the page with the table.
				l.Address, _ = s.resolve(table, l.written)
				if !strings.Contains(l.Address, "://") {
					l.Current = l.Address == p.Address
					l.Address = relative(p.Address, l.Address)
				}
				menu[i].Open = menu[i].Open || l.Current
				shown.Links = append(shown.Links, l)
			}
			menu[i].Kinds = append(menu[i].Kinds, shown)
		}
	}
	return menu
}
