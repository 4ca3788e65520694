package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/tollgate-dev/tollgate/core/auth/replay"
)

// caught is the share of attacks at which the share of challenged logins is measured.
const caught = .95

// classes are the scores of a stream by label, in ascending order.
type classes map[string][]float64

// classify returns the scores of a stream by label.
func classify(stream []login, all scores, value func(score) float64) classes {
	c := classes{}
	for _, l := range stream {
		if s, ok := all[l.ID]; ok {
			c[l.Label] = append(c[l.Label], value(s))
		}
	}
	for _, list := range c {
		slices.Sort(list)
	}
	return c
}

// areaUnderCurve returns the probability that a random attack has a higher score than a random
// legitimate login; an equal score counts half.
func (c classes) areaUnderCurve(attack string) float64 {
	sum, legit := 0.0, c[replay.LegitimateLabel]
	for _, s := range c[attack] {
		below, _ := slices.BinarySearch(legit, s)
		sum += float64(below) + float64(len(legit)-below-countAtLeast(legit, math.Nextafter(s, math.Inf(1))))/2
	}
	return sum / float64(len(c[attack])) / float64(len(legit))
}

// challenged returns the share of legitimate logins that are challenged if the threshold is the
// highest that catches a share of the attacks.
func (c classes) challenged(attack string, share float64) float64 {
	list, legit := c[attack], c[replay.LegitimateLabel]
	i := len(list) - int(math.Ceil(share*float64(len(list))))
	return float64(countAtLeast(legit, list[i])) / float64(len(legit))
}

// countAtLeast returns how many of the sorted values are at least v.
func countAtLeast(sorted []float64, v float64) int {
	i, _ := slices.BinarySearch(sorted, v)
	return len(sorted) - i
}

// attackLabels returns the labels of attacks that all streams have, in the order in which they are
// first met.
func attackLabels(streams [][]login) (labels []string) {
	for _, l := range streams[0] {
		if l.Label != replay.LegitimateLabel && !slices.Contains(labels, l.Label) {
			labels = append(labels, l.Label)
		}
	}
	slices.Sort(labels)
	return labels
}

// measures returns the area and the challenged share of a class in each stream.
func measures(streams [][]login, s scorer, attack string, value func(score) float64) (area, challenged []float64) {
	for i, stream := range streams {
		c := classify(stream, s.streams[i], value)
		if len(c[attack]) == 0 || len(c[replay.LegitimateLabel]) == 0 {
			continue
		}
		area, challenged = append(area, c.areaUnderCurve(attack)), append(challenged, c.challenged(attack, caught))
	}
	return area, challenged
}

// printHeader prints the header of a table with a column for each class of attacks.
func printHeader(w io.Writer, first string, labels []string) {
	fmt.Fprintf(w, "| %s | %s |\n|---|%s\n", first, strings.Join(labels, " | "), strings.Repeat("---|", len(labels)))
}

// printTable prints the measures of each scorer, with the standard deviation over the streams.
func printTable(w io.Writer, streams [][]login, all []scorer) {
	labels := attackLabels(streams)
	printHeader(w, fmt.Sprintf("AUC / challenged at %.0f %% caught", 100*caught), labels)
	for _, s := range all {
		fmt.Fprintf(w, "| %s |", s.name)
		for _, attack := range labels {
			area, challenged := measures(streams, s, attack, func(s score) float64 { return s.value })
			fmt.Fprintf(w, " %s / %s |", spread(area, 4), spread(challenged, 3))
		}
		fmt.Fprintln(w)
	}
}

// printAblation prints the measures of the first scorer that has parts, without each of them.
func printAblation(w io.Writer, streams [][]login, all []scorer) {
	for _, s := range all {
		features := map[string]bool{}
		for _, one := range s.streams {
			for _, sc := range one {
				for _, p := range sc.parts {
					features[p.Feature] = true
				}
			}
		}
		if len(features) == 0 {
			continue
		}
		labels := attackLabels(streams)
		fmt.Fprintln(w)
		printHeader(w, s.name+" without", labels)
		printRow := func(name string, value func(score) float64) {
			fmt.Fprintf(w, "| %s |", name)
			for _, attack := range labels {
				area, challenged := measures(streams, s, attack, value)
				fmt.Fprintf(w, " %s / %s |", number(mean(area), 4), number(mean(challenged), 3))
			}
			fmt.Fprintln(w)
		}
		printRow("nothing", func(s score) float64 { return s.without() })
		for _, g := range groups {
			if features[g[0]] || features[g[len(g)-1]] {
				printRow(g[len(g)-1], func(s score) float64 { return s.without(g...) })
			}
		}
		return
	}
}

// groups are the features of each part, which has one of them; the last one names the part.
var groups = [][]string{
	{"country", "provider", "network"}, {"address"}, {"system", "browser", "device"}, {"browserVersion"}, {"language"},
	{"timezone"}, {"reputation"},
}

func mean(list []float64) (m float64) {
	for _, v := range list {
		m += v / float64(len(list))
	}
	return m
}

// spread formats the mean and the standard deviation of a sample.
func spread(list []float64, digits int) string {
	m, sum := mean(list), 0.0
	for _, v := range list {
		sum += (v - m) * (v - m)
	}
	return number(m, digits) + " ± " + number(math.Sqrt(sum/float64(max(len(list)-1, 1))), digits)
}

func number(v float64, digits int) string { return fmt.Sprintf("%.*f", digits, v) }

// thresholds returns, for each threshold, the share of legitimate logins (X) and of attacks (Y)
// that are at or above it, both ascending.
func thresholds(attacks, legit []float64) (points plotter.XYs) {
	slices.Sort(attacks)
	slices.Sort(legit)
	steps := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(attacks), legit...))))
	points = append(points, plotter.XY{X: leastShare})
	for _, t := range slices.Backward(steps) {
		x := float64(countAtLeast(legit, t)) / float64(len(legit))
		points = append(points, plotter.XY{
			X: max(x, leastShare), Y: float64(countAtLeast(attacks, t)) / float64(len(attacks)),
		})
	}
	return points
}
