// Command riskeval measures how well scores tell attacks from the logins of people, in a stream of
// logins that is labelled, and draws what each threshold costs. The scores come from
// "tollgate risk replay", or from any scorer that writes its form.
//
// The labelled streams are files with one login for each line, as "tollgate risk replay" reads
// them, with a label: "legit", or the name of a class of attacks. The scores of each scorer are
// files in the same order:
//
//	go build -C test/tools -o ../../bin/ ./riskeval
//	bin/riskeval -events e1.jsonl,e2.jsonl -plot risk.png points=p1.jsonl,p2.jsonl history=h1.jsonl,h2.jsonl
//
// It prints the mean over the streams with the standard deviation, and an ablation of scores that
// have historyParts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "riskeval:", err)
		os.Exit(1)
	}
}

// scorer is a scorer with its scores of each stream.
type scorer struct {
	name    string
	streams []scores
}

func run(args []string) error {
	f := flag.NewFlagSet("riskeval", flag.ContinueOnError)
	events := f.String("events", "", "labelled streams, separated by commas")
	file := f.String("plot", "", "file to write the plot to, as PNG; empty: no plot")
	least := f.Int("min-history", 1, "legitimate logins that a person needs before a login counts")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *events == "" || f.NArg() == 0 {
		return errors.New("usage: riskeval -events E.jsonl,… NAME=SCORES.jsonl,… …")
	}
	streams, err := readStreams(strings.Split(*events, ","), *least)
	if err != nil {
		return err
	}
	var all []scorer
	for _, arg := range f.Args() {
		name, files, _ := strings.Cut(arg, "=")
		s := scorer{name: name}
		for i, path := range strings.Split(files, ",") {
			if i >= len(streams) {
				return fmt.Errorf("%s: more files than streams", name)
			}
			one, err := readScores(path)
			if err != nil {
				return err
			}
			s.streams = append(s.streams, one)
		}
		if len(s.streams) != len(streams) {
			return fmt.Errorf("%s: fewer files than streams", name)
		}
		all = append(all, s)
	}
	printTable(os.Stdout, streams, all)
	printAblation(os.Stdout, streams, all)
	if *file == "" {
		return nil
	}
	return drawPlot(*file, streams, all)
}
