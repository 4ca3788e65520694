package browsing

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// How a search that finds nothing forgives one wrong letter in one of its words.
const (
	minForgiven = 5   // letters of a word; of a shorter one, half says too little
	maxForgiven = 4   // words that are tried
	maxCompared = 200 // servers whose words are compared with a wrong one
)

// correct replaces a word of a search that finds nothing by a word that differs in one letter and that
// servers with the other words have, and returns the new words; empty if there is none.
func (f *Finder) correct(ctx context.Context, s *registrystore.Search) (string, error) {
	for i, word := range s.Words {
		if i == maxForgiven {
			break
		}
		right, err := f.correctWord(ctx, *s, i)
		if err != nil {
			return "", err
		}
		if right != "" && right != word {
			s.Words = slices.Clone(s.Words)
			s.Words[i] = right
			return strings.Join(s.Words, " "), nil
		}
	}
	return "", nil
}

// correctWord returns the word for the one at an index. Of a word with one wrong letter, one half is
// right, so servers that have a half are compared.
func (f *Finder) correctWord(ctx context.Context, s registrystore.Search, at int) (string, error) {
	word := []rune(s.Words[at])
	if len(word) < minForgiven {
		return "", nil
	}
	frequent := map[string]int{}
	s.Words, s.Offset, s.Limit = slices.Clone(s.Words), 0, maxCompared
	for _, half := range []string{string(word[:len(word)/2]), string(word[len(word)/2:])} {
		s.Words[at] = half
		found, err := f.ports.Catalogue.Find(ctx, s)
		if err != nil {
			return "", err
		}
		for _, server := range found.Servers {
			countNear(frequent, server, string(word))
		}
	}
	best := ""
	for near, times := range frequent {
		if best == "" || cmp.Or(cmp.Compare(frequent[best], times), strings.Compare(near, best)) < 0 {
			best = near
		}
	}
	return best, nil
}

// countNear counts the words of a server that differ in one letter from another word.
func countNear(frequent map[string]int, server registrystore.FoundServer, word string) {
	text := strings.ToLower(server.Name.String() + " " + server.Title + " " + server.Description)
	for near := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if max(len(near), len(word))-min(len(near), len(word)) < 2 && fields.EditDistance(near, word) == 1 {
			frequent[near]++
		}
	}
}
