package main

import (
	_ "embed"
	"encoding/json"
	"html/template"
)

var (
	//go:embed template.html
	templateText string
	//go:embed style.css
	style []byte
	//go:embed search.js
	script []byte

	layout = template.Must(template.New("page").Parse(templateText))
)

// found is an entry of the index of the search.
type found struct {
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Address string `json:"address"`
	Text    string `json:"text"`
}

// searchIndex returns a script with all sections of all pages. It is a script and no JSON so that
// browsers load it from a folder too.
func (s *site) searchIndex() ([]byte, error) {
	var all []found
	for _, source := range s.sources() {
		p := s.pages[source]
		for _, part := range p.sections {
			all = append(all, found{p.Title, part.heading, p.Address + "#" + part.anchor, part.text})
		}
	}
	encoded, err := json.Marshal(all)
	return append(append([]byte("window.searchIndex = "), encoded...), ";\n"...), err
}
