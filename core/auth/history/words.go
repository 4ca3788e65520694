package history

import (
	"fmt"
	"math"
	"strings"
)

// featureWords are the features that are compared by their values, in the words of a reason.
var featureWords = map[Feature]string{
	Network: "this network", Provider: "this provider", Country: "this country", Device: "this device",
	Browser: "this browser",
	System:  "this system", Timezone: "this time zone", Language: "this language",
}

// readable returns a value in words.
func readable(v Value) string {
	switch v.Feature {
	case Network:
		if strings.HasPrefix(v.Text, widePrefix) {
			return "" // a network without a number
		}
		number, _, _ := strings.Cut(v.Text, " ")
		return number
	case Browser, Device:
		parts := strings.SplitN(v.Text, "|", 3)
		words := parts[0] + " on " + parts[1]
		if len(parts) == 3 {
			words += ", " + parts[2]
		}
		return words
	}
	return v.Text
}

// Sentence returns the part as a reason that a person reads, for example "this network (AS64500):
// never before for you, 3 % of all sign-ins here: +12".
func (p Part) Sentence() string { return fmt.Sprintf("%s: %+.0f", p.Reason(), p.Points) }

// Reason returns the sentence without the points.
func (p Part) Reason() string {
	switch p.Feature {
	case Address:
		return p.addressReason()
	case Upgrade:
		return fmt.Sprintf("browser version: %s, like %s of all sign-ins here", p.Value, percent(p.Person))
	case Hidden:
		return p.hiddenReason()
	}
	what := featureWords[p.Feature]
	if what == "" {
		what = p.Feature.String()
	}
	if p.Value != "" {
		what += " (" + p.Value + ")"
	}
	yours := "never before for you"
	if p.Known {
		yours = percent(p.Person) + " of your sign-ins"
	}
	return fmt.Sprintf("%s: %s, %s of all sign-ins here", what, yours, percent(p.Everyone))
}

func (p Part) addressReason() string {
	if p.Known {
		return fmt.Sprintf("this address: known for you in this network, as expected for %s of your sign-ins from it",
			percent(p.Person))
	}
	return fmt.Sprintf(
		"this address: never before for you in this network, as expected for %s of your sign-ins from it",
		percent(p.Person))
}

func (p Part) hiddenReason() string {
	const hidden = "an address of a hosting company, a proxy or Tor"
	if p.Value == "" {
		return fmt.Sprintf("not %s, as expected for %s of your sign-ins", hidden, percent(p.Person))
	}
	return fmt.Sprintf("%s, as expected for %s of your sign-ins", hidden, percent(p.Person))
}

// The words of an Upgrade.
var changeWords = map[string]string{
	sameVersion: "the same as last time", newerVersion: "newer than last time", olderVersion: "older than last time",
}

// percent returns a probability in percent, in words that do not claim more than is known.
func percent(p float64) string {
	switch {
	case p < .001:
		return "less than 0.1 %"
	case p < .02:
		return fmt.Sprintf("%.1f %%", p*100)
	}
	return fmt.Sprintf("%.0f %%", math.Min(p, 1)*100)
}
