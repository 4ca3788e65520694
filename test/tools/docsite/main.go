// Command docsite renders the documentation as static pages: those of docs, with a menu from the
// table of docs/README.md and a search, and the pages of the root that they link to. Links lead to
// pages, to files of docs, which are copied, and else to the repository; anchors are those that
// GitHub makes. It does not check links to other sites.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	s := newSite()
	flag.StringVar(&s.from, "from", "../..", "the folder of the project")
	flag.StringVar(&s.to, "to", "", "the folder that the pages are written to, empty or with an earlier site")
	flag.StringVar(&s.repository, "repository", s.repository, "where links to other files lead")
	flag.StringVar(&s.Version, "version", "", "what the pages are the documentation of")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d pages\n", s.to, len(s.pages))
}

// run reads, renders and writes the site.
func (s *site) run() error {
	if s.to == "" {
		return errors.New("-to: name the folder that the pages are written to")
	}
	if err := s.read(); err != nil {
		return err
	}
	files, err := s.render()
	if err != nil {
		return err
	}
	return s.write(files)
}
