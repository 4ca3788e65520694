package main

import (
	"errors"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// resolve returns the link in the site for one that is written in a page: to another page or a
// heading of it, to a copied file, or to the repository.
func (s *site) resolve(p *page, link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	if u.Scheme != "" || u.Host != "" {
		return link, nil
	}
	target := p.source
	if u.Path != "" {
		target = path.Join(path.Dir(p.source), u.Path)
	}
	for _, source := range []string{target, path.Join(target, index)} {
		if to := s.pages[source]; to != nil {
			return linkTo(p, to, u.Fragment)
		}
	}
	if _, copied := s.copies[target]; copied {
		return relative(p.Address, addressOf(target)), nil
	}
	if strings.HasPrefix(target, "..") {
		return "", errors.New("it leads out of the project")
	}
	info, err := os.Stat(filepath.Join(s.from, target))
	switch {
	case err != nil:
		return "", errors.New("there is no such file")
	case info.IsDir():
		return s.repository + "/tree/main/" + target, nil
	}
	return s.repository + "/blob/main/" + target, nil
}

// linkTo returns the link from one page to a heading or an anchor of another one, or of itself.
func linkTo(from, to *page, fragment string) (string, error) {
	if fragment == "" {
		return relative(from.Address, to.Address), nil
	}
	if !to.anchors[fragment] {
		return "", errors.New("the page has no such heading")
	}
	if from == to {
		return "#" + fragment, nil
	}
	return relative(from.Address, to.Address) + "#" + fragment, nil
}
