package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
)

// login is a login with the right password.
type login struct {
	ID    string
	Label string
}

// readStreams reads labelled streams. It leaves out wrong passwords, and the logins of people with
// fewer earlier legitimate logins than least.
func readStreams(files []string, least int) (streams [][]login, err error) {
	for _, file := range files {
		var stream []login
		earlier := map[string]int{}
		err := readLines(file, func(line []byte) error {
			var e struct {
				ID, UserID, Label string
				PasswordCorrect   bool
			}
			if err := json.Unmarshal(line, &e); err != nil || !e.PasswordCorrect {
				return err
			}
			if earlier[e.UserID] >= least {
				stream = append(stream, login{e.ID, e.Label})
			}
			if e.Label == replay.LegitimateLabel {
				earlier[e.UserID]++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		streams = append(streams, stream)
	}
	return streams, nil
}

// score is the score of a login. Parts are those of the history, by the names of their features;
// nil if it is silent.
type score struct {
	value float64
	parts []part
}

type part struct {
	Feature string
	Points  float64
}

// scores are the scores of a stream by the id of the login.
type scores map[string]score

func readScores(file string) (scores, error) {
	all := scores{}
	err := readLines(file, func(line []byte) error {
		var s struct {
			ID           string
			RiskScore    float64
			HistoryParts []part
		}
		err := json.Unmarshal(line, &s)
		all[s.ID] = score{s.RiskScore, s.HistoryParts}
		return err
	})
	return all, err
}

// without returns the score without the parts of some features.
func (s score) without(features ...string) float64 {
	if s.parts == nil {
		return s.value
	}
	var rest []history.Part
next:
	for _, p := range s.parts {
		for _, f := range features {
			if p.Feature == f {
				continue next
			}
		}
		rest = append(rest, history.Part{Points: p.Points})
	}
	return history.SumParts(rest)
}

func readLines(file string, do func(line []byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := do(lines.Bytes()); err != nil {
			return fmt.Errorf("%s, line %d: %w", file, n, err)
		}
	}
	return lines.Err()
}
