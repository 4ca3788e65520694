package operator

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

func newMirror(p cli.Process) *cobra.Command {
	k := newKind(p, &mirror.Kind, kindTexts{
		short:   "Manage mirrors: other registries whose servers this one takes over",
		example: "public", remove: newMirrorRemove(p), add: true, first: true, state: mirrorState{}, flatten: flattenMirror,
		put: &cobra.Command{
			Use: "add NAME URL [--include PATTERN ...] [--exclude PATTERN ...]",
			Long: "Add a mirror of the registry at URL, the address before /v0.1. The service reads it\n" +
				"within seconds, then every --interval what changed, and once a day everything. It\n" +
				"takes the servers that a pattern of --include selects and none of --exclude; all\n" +
				"without --include. They cannot be published or changed here. A server that was\n" +
				"published here is not taken, nor is one whose name is reserved (RESERVED_NAMESPACES)\n" +
				"or, unless a pattern of --include names its namespace, one that people may publish\n" +
				"here by a grant that is not over everything.\n\n" +
				"If REGISTRY_REVIEW is on, documents wait for review, unless the mirror is trusted.",
			Example: "  tollgate mirror add public https://registry.example --include 'io.github.acme/*'\n" +
				"  tollgate mirror add corp https://tools.corp.example/registry --interval 10m --review trusted",
		},
		list: &cobra.Command{
			Short: "List the mirrors and how they are",
			Long: "List the mirrors. STATE is waiting before the first read, ok, or failing; then what\n" +
				"was listed before stays listed, and REASON says why the last read failed. REFUSED is\n" +
				"how much the last comparison of everything refused, by rule: document, record,\n" +
				"quarantine and store count versions, reserved and granted count servers.",
		},
		added: func(o object) {
			if include, _ := o["include"].([]any); len(include) == 0 {
				// the mirror is added also without the warning
				_, _ = fmt.Fprintf(p.Stderr,
					"warning: without --include, the mirror takes each name that %s lists, except reserved ones and "+
						"those that people here may publish; what nobody here has published yet can be anybody's\n",
					o["url"])
			}
		},
	})
	return k.newGroup(newMirrorSync(p, k), newMirrorDiff(p))
}

func newMirrorSync(p cli.Process, k kindCommands) *cobra.Command {
	c := &cobra.Command{
		Use:   "sync NAME",
		Short: "Read the registry of a mirror now",
		Long: "Read the registry of a mirror now and take over what changed. The service may run\n" +
			"at the same time: the command waits while the service reads for this mirror.\n\n" +
			"Nothing is taken if the list cannot be read to its end, or has less than half of\n" +
			"the servers that the mirror has; then the command exits with 1.\n\n" +
			"With --server the service reads soon, and the command prints the mirror.",
		Example: "  tollgate mirror sync public\n  tollgate mirror sync public --full --output json",
	}
	options := mirroring.Options{Wait: true}
	c.Flags().BoolVar(&options.Full, "full", false, "compare everything, not only what changed since the last read")
	c.Flags().BoolVar(&options.AllowShrink, "allow-shrink", false,
		"also take a list with less than half of the servers that the mirror has")
	localOnly(c, "full", "allow-shrink")
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		bar := cli.NewCountBar(p.Stderr)
		options.Observe = bar.Observe
		summary, err := r.Mirrors.Sync(r.ctx, mirror.Name(r.args[0]), options)
		bar.Finish()
		return syncTable(summary), err
	}, func(r run) (cli.Table, error) {
		read := object{}
		err := r.send(http.MethodPost, at("mirrors", r.args[0], "sync"), nil, &read)
		return k.table([]object{read}, err)
	})
}

func newMirrorDiff(p cli.Process) *cobra.Command {
	return newDatabaseTable(p, &cobra.Command{
		Use:   "diff NAME",
		Short: "Show how the registry of a mirror differs from what is here",
		Long: "Read the whole registry of a mirror and show what a sync would do, without doing it:\n" +
			"what changed; what is refused, with the rule; and what is shadowed, because a\n" +
			"server of the same name was published here or belongs to another mirror.",
		Example: "  tollgate mirror diff public",
	}, func(r run) (cli.Table, error) {
		bar := cli.NewCountBar(p.Stderr)
		report := newDiffReport()
		_, err := r.Mirrors.Diff(r.ctx, mirror.Name(r.args[0]), mirroring.Options{
			Observe: bar.Observe, Report: report.add,
		})
		bar.Finish()
		return report.table(), err
	}, func(r run) (cli.Table, error) {
		var found struct {
			Outcomes []struct {
				Verdict mirroring.Verdict `json:"verdict"`
				Name    string            `json:"name"`
				Version string            `json:"version"`
				Rule    mirror.Rule       `json:"rule"`
				Reason  string            `json:"reason"`
			} `json:"outcomes"`
		}
		err := r.send(http.MethodGet, at("mirrors", r.args[0], "diff"), nil, &found)
		report := newDiffReport()
		for _, o := range found.Outcomes {
			report.add(mirroring.Outcome{Verdict: o.Verdict, Name: o.Name, Version: o.Version, Rule: o.Rule, Reason: o.Reason})
		}
		return report.table(), err
	})
}

func newMirrorRemove(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a mirror",
		Long: "Remove a mirror. Its servers stay and become local: they can be changed here then.\n" +
			"With --purge they are deleted instead, and their names can be published again;\n" +
			"only what is in quarantine stays there, hidden.",
		Example: "  tollgate mirror remove public --purge",
	}
	addManaged(c)
	purge := c.Flags().Bool("purge", false, "delete the servers of the mirror")
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		n, err := r.Mirrors.Remove(r.ctx, mirror.Name(r.args[0]), *purge, nil)
		return removalTable(r.args[0], n, *purge), err
	}, func(r run) (cli.Table, error) {
		var before struct{ State mirrorState }
		if err := r.send(http.MethodGet, at("mirrors", r.args[0]), nil, &before); err != nil {
			return cli.Table{}, err
		}
		return removalTable(r.args[0], before.State.Servers, *purge), r.call(tollgateclient.Request{
			Method: http.MethodDelete, Path: at("mirrors", r.args[0]), Query: url.Values{"purge": {strconv.FormatBool(*purge)}},
		}, nil)
	})
}

func removalTable(name string, servers int, purged bool) cli.Table {
	what := "kept as local"
	if purged {
		what = "deleted"
	}
	return cli.ListTable([]mirrorRemoval{{name, servers, what}})
}

// mirrorRemoval is what became of the servers of a mirror.
type mirrorRemoval struct {
	Mirror  string `json:"mirror"  column:"MIRROR"`
	Servers int    `json:"servers" column:"SERVERS"`
	Result  string `json:"result"  column:"RESULT"`
}

// mirrorState is how a mirror is, in the output of commands.
type mirrorState struct {
	State        string          `json:"state"        column:"STATE"`
	LastSuccess  *stamp          `json:"lastSuccess"  column:"LAST SUCCESS"`
	FailingSince *stamp          `json:"failingSince" column:"FAILING SINCE"`
	Reason       string          `json:"reason"       column:"REASON"`
	Servers      int             `json:"servers"      column:"SERVERS"`
	Refused      mirror.Refusals `json:"refused"      column:"REFUSED"`
	NextRead     *stamp          `json:"nextRead"`
}

// flattenMirror moves the state of a mirror to its top.
func flattenMirror(o object) {
	state, _ := o["state"].(object)
	o["refused"] = object{}
	maps.Copy(o, state)
	o["state"], o["nextRead"] = state["health"], state["nextAt"]
}

// syncVerdicts are the verdicts in the order in which they are shown.
func syncVerdicts() []mirroring.Verdict {
	return []mirroring.Verdict{
		mirroring.Added, mirroring.Replaced, mirroring.Status, mirroring.Submitted, mirroring.Shadowed,
		mirroring.Refused,
	}
}

func syncTable(s mirroring.Summary) cli.Table {
	t := cli.Table{Header: []string{"RESULT", "NUMBER"}}
	value := map[string]any{"full": s.Full, "records": s.Records, "servers": s.Servers}
	for _, v := range syncVerdicts() {
		t.Rows = append(t.Rows, []string{string(v), strconv.Itoa(s.Count[v])})
		value[string(v)] = s.Count[v]
	}
	t.Rows = append(t.Rows, []string{"records read", strconv.Itoa(s.Records)}, []string{
		"servers of the mirror", strconv.Itoa(s.Servers),
	})
	t.Value = value
	return t
}

// maxDiffLines is the greatest number of lines that a diff lists.
const maxDiffLines = 10_000

// diffLine is a version, or a whole server, in a diff.
type diffLine struct {
	ServerName string `json:"serverName"`
	Version    string `json:"version"`
	Change     string `json:"change,omitempty"` // added, replaced, status, submitted
	Rule       string `json:"rule,omitempty"`   // of what is refused
	Reason     string `json:"reason,omitempty"`
}

// diffReport collects the outcomes of a diff.
type diffReport struct {
	lists map[string][]diffLine
	lines [][]string
	more  int
}

func newDiffReport() *diffReport {
	return &diffReport{lists: map[string][]diffLine{"changed": {}, "refused": {}, "shadowed": {}}}
}

func (d *diffReport) add(o mirroring.Outcome) {
	if len(d.lines) >= maxDiffLines {
		d.more++
		return
	}
	list, line := "changed", diffLine{ServerName: o.Name, Version: o.Version, Rule: string(o.Rule), Reason: o.Reason}
	switch o.Verdict {
	case mirroring.Shadowed, mirroring.Refused:
		list = string(o.Verdict)
	case mirroring.Added, mirroring.Replaced, mirroring.Status, mirroring.Submitted:
		line.Change = string(o.Verdict)
	}
	d.lists[list] = append(d.lists[list], line)
	d.lines = append(d.lines, []string{string(o.Verdict), o.Name, o.Version, o.Reason})
}

func (d *diffReport) table() cli.Table {
	t := cli.Table{Header: []string{"RESULT", "SERVER", "VERSION", "WHY"}, Rows: d.lines}
	if d.more > 0 {
		t.Rows = append(t.Rows, []string{"", "and " + strconv.Itoa(d.more) + " more", "", ""})
	}
	t.Value = map[string]any{
		"changed": d.lists["changed"], "refused": d.lists["refused"], "shadowed": d.lists["shadowed"], "more": d.more,
	}
	return t
}
