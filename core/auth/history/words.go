package history

import (
	"fmt"
	"math"
)

// featureWords are the features in the words of a reason.
var featureWords = map[Feature]string{
	Address: "this address", Network: "this network", Provider: "this provider", Country: "this country", Hidden: "this kind of address",
	Device: "this device", Browser: "this browser", System: "this system", Upgrade: "this browser version",
	Timezone: "this time zone", Language: "this language", Pause: "so soon after the last sign-in",
}

// Sentence returns the part as a reason that a person reads, for example "this network (AS64500):
// never before for you, 3 % of all sign-ins here: +12".
func (p Part) Sentence() string {
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
	return fmt.Sprintf("%s: %s, %s of all sign-ins here: %+.0f", what, yours, percent(p.Everyone), p.Points)
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
