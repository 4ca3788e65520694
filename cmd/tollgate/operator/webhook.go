package operator

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
)

func newWebhook(p cli.Process) *cobra.Command {
	return cli.NewGroup("webhook", "Manage webhooks: receivers of what happens to servers",
		newWebhookAdd(p), newWebhookList(p), newWebhookDeliveries(p), newWebhookTest(p), newRemoval(p,
			"webhooks", "Remove a webhook with what was not delivered to it", "webhook remove 8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50"),
		newWebhookRedeliver(p))
}

func newWebhookAdd(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "add URL --events EVENT,... [--pattern PATTERN]",
		Short: "Add a webhook and print its secret",
		Long: "Add a webhook: the service posts what happens to servers to URL, from now on. The\n" +
			"command prints the secret with which requests are signed, this once: it is stored\n" +
			"encrypted and cannot be read again.\n\n" +
			"URL must begin with https:// and have a public address, or one in WEBHOOK_NETWORKS. A\n" +
			"loopback host, such as 127.0.0.1, may have http:// too.\n\n" +
			"Events:\n" +
			"  published    a version is listed\n" +
			"  replaced     the document of a version is replaced\n" +
			"  status       a version, or all of a server, got a status; deletion too\n" +
			"  approved     a review is approved by a person or a rule\n" +
			"  review.submitted\n" +
			"               something waits for review\n" +
			"  rejected     a review is rejected\n" +
			"  changes_requested\n" +
			"               changes of what was submitted are requested\n" +
			"  quarantined  a server or a version is put in quarantine\n" +
			"  released     a server or a version is released from quarantine",
		Example: "  tollgate webhook add https://hooks.example.com/tollgate --events published,replaced,status\n" +
			"  tollgate webhook add https://hooks.example.com/audit --events quarantined,released --pattern 'com.example/*'",
	}
	var d event.Draft
	c.Flags().StringSliceVar(&d.Events, "events", nil,
		"events to send, comma separated: "+strings.Join(each.Strings(event.Types()), ", "))
	c.Flags().StringVar(&d.Pattern, "pattern", "*", "servers: a name, a prefix that ends in *, or *")
	cli.RequireFlags(c, "events")
	cli.CompleteValues(c, "events", each.Strings(event.Types())...)
	return newTableCommand(p, c, posted[addedWebhookRow](at("webhooks"), func(r run) any {
		return map[string]any{"url": r.args[0], "events": d.Events, "pattern": d.Pattern}
	}))
}

func newWebhookList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the webhooks and what could not be delivered to them",
		Long: "List the webhooks, with how many events wait for their delivery and how many are\n" +
			"dead: not delivered within WEBHOOK_RETRY_FOR. Below are the dead events, at most\n" +
			"100 of each webhook, the newest first. 'tollgate webhook redeliver' sends them again.\n" +
			"The table has … for the last part of each path, which may be secret; the JSON has it.",
		Example: "  tollgate webhook list --output json",
	}
	o := cli.AddOutput(c)
	return newDatabaseCommand(p, c, func(r run) error {
		list, err := r.Webhooks.List(r.ctx)
		if err != nil {
			return err
		}
		rows := each.MapRef(list, newWebhookRow)
		return printWebhooks(p, o, rows)
	}, func(r run) error {
		rows, err := remoteWebhooks(r)
		if err != nil {
			return err
		}
		return printWebhooks(p, o, rows)
	})
}

// printWebhooks prints webhooks, and the dead events below their table. The JSON of webhooks has
// them already.
func printWebhooks(p cli.Process, o *cli.Output, rows []webhookRow) error {
	if err := o.PrintResult(p.Stdout, cli.ListTable(rows)); err != nil {
		return err
	}
	var dead []deadEventRow
	for _, row := range rows {
		dead = append(dead, row.DeadEvents...)
	}
	if o.Structured() || len(dead) == 0 {
		return nil
	}
	if err := cli.PrintLine(p.Stdout, ""); err != nil {
		return err
	}
	return o.PrintResult(p.Stdout, cli.ListTable(dead))
}

// shownDeliveries is the number of deliveries that are printed.
const shownDeliveries = 20

func newWebhookDeliveries(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:   "deliveries ID",
		Short: "List the last deliveries to a webhook",
		Long: "List the 20 deliveries to a webhook that were tried last, the newest attempt first.\n" +
			"STATUS is that of the response, or 0 without one; PROBLEM says why.",
		Example: "  tollgate webhook deliveries 8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50",
	}, func(r run) (cli.Table, error) {
		list, err := listOf[deliveryRow](r, at("webhooks", r.args[0], "deliveries"), "deliveries", nil)
		return cli.ListTable(list[:min(len(list), shownDeliveries)]), err
	})
}

func newWebhookTest(p cli.Process) *cobra.Command {
	return newPlainCommand(p, &cobra.Command{
		Use:   "test ID",
		Short: "Send a test event to a webhook",
		Long: "Send a signed event of the type test to a webhook, once and from this machine, and\n" +
			"print the status of the response. The command fails unless it is 200 to 299.",
		Example: "  tollgate webhook test 8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50",
	}, func(r run) error {
		var tested struct {
			Status  int    `json:"status"`
			Problem string `json:"problem"`
		}
		err := r.send(http.MethodPost, at("webhooks", r.args[0], "test"), nil, &tested)
		switch {
		case err != nil:
			return err
		case tested.Problem != "":
			return errors.New(tested.Problem)
		}
		if tested.Status < 200 || tested.Status > 299 {
			return fmt.Errorf("the receiver answered with the status %d", tested.Status)
		}
		return cli.PrintLine(p.Stdout, fmt.Sprintf("the receiver answered with the status %d", tested.Status))
	})
}

func newWebhookRedeliver(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "redeliver ID [--event EVENT]",
		Short: "Send dead events to a webhook again",
		Long: "Have the service send all dead events of a webhook again, in their order and for\n" +
			"WEBHOOK_RETRY_FOR. With --event it sends one event, which need not be dead: what was\n" +
			"delivered is kept for a day, what is dead for 30 days.",
		Example: "  tollgate webhook redeliver 8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50\n" +
			"  tollgate webhook redeliver 8a4f1c6e-0b7d-4e2a-9c35-6d1f2e3b4a50 --event c1d7e9b2-5a3f-4860-8e14-7b9a2c0d6f38",
	}
	of := c.Flags().String("event", "", "ID of one event; default: all dead ones")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("event") && *of == "" {
			return errors.New("--event is empty")
		}
		return nil
	}
	return newPlainCommand(p, c, func(r run) error {
		var sent struct {
			Redelivered int `json:"redelivered"`
		}
		var body any
		if *of != "" {
			body = map[string]string{"event": *of}
		}
		if err := r.send(http.MethodPost, at("webhooks", r.args[0], "redeliver"), body, &sent); err != nil {
			return err
		}
		return cli.PrintLine(p.Stdout, cli.FormatCount(sent.Redelivered, "event is", "events are")+" sent again")
	})
}

// addedWebhookRow is a new webhook in the output of commands.
type addedWebhookRow struct {
	ID        string   `json:"id"        column:"ID"`
	URL       string   `json:"url"       column:"URL"`
	Events    wordList `json:"events"    column:"EVENTS"`
	Pattern   string   `json:"pattern"   column:"PATTERN"`
	CreatedAt stamp    `json:"createdAt"`
	Secret    string   `json:"secret"    column:"SECRET"`
}

// deliveryRow is the last attempt to deliver an event in the output of commands.
type deliveryRow struct {
	Time       stamp  `json:"time"              column:"TIME"`
	ID         string `json:"id"                column:"EVENT"`
	Type       string `json:"type"              column:"TYPE"`
	ServerName string `json:"serverName"        column:"SERVER"`
	Version    string `json:"version,omitempty" column:"VERSION"` // empty for the whole server
	State      string `json:"state"             column:"STATE"`
	Attempts   int    `json:"attempts"          column:"ATTEMPTS"`
	Status     int    `json:"status"            column:"STATUS"`
	Problem    string `json:"problem,omitempty" column:"PROBLEM"`
}

// webhookRow is a webhook in the output of commands.
type webhookRow struct {
	ID          string         `json:"id"                    column:"ID"`
	URL         string         `json:"url"`
	Masked      string         `json:"-"                     column:"URL"`
	Events      wordList       `json:"events"                column:"EVENTS"`
	Pattern     string         `json:"pattern"               column:"PATTERN"`
	CreatedAt   stamp          `json:"createdAt"`
	Pending     int            `json:"pending"               column:"PENDING"`
	Dead        int            `json:"dead"                  column:"DEAD"`
	LastSuccess stamp          `json:"lastSuccess,omitempty" column:"LAST SUCCESS"`
	LastFailure stamp          `json:"lastFailure,omitempty" column:"LAST FAILURE"`
	LastProblem string         `json:"lastProblem,omitempty" column:"LAST PROBLEM"`
	DeadEvents  []deadEventRow `json:"deadEvents"`
}

// deadEventRow is a dead event in the output of commands.
type deadEventRow struct {
	Webhook    string  `json:"-"          column:"WEBHOOK"`
	ID         string  `json:"id"         column:"EVENT"`
	Type       string  `json:"type"       column:"TYPE"`
	ServerName string  `json:"serverName" column:"SERVER"`
	Version    *string `json:"version"` // nil for the whole server
	Versions   string  `json:"-"          column:"VERSION"`
	Attempts   int     `json:"attempts"   column:"ATTEMPTS"`
	DeadSince  stamp   `json:"deadSince"  column:"DEAD SINCE"`
	Problem    string  `json:"problem"    column:"PROBLEM"`
}

func newWebhookRow(l *notifying.Listed) webhookRow {
	return webhookRow{
		ID: string(l.ID), URL: l.URL.String(), Masked: l.URL.Masked(), Events: each.Strings(l.Events), Pattern: l.Pattern.String(),
		CreatedAt: formatOptionalTime(l.CreatedAt),
		Pending:   l.Pending, Dead: l.Dead, LastSuccess: formatOptionalTime(l.LastSuccess),
		LastFailure: formatOptionalTime(l.LastFailure),
		LastProblem: l.LastProblem, DeadEvents: each.MapRef(l.Newest, newDeadEventRow),
	}
}

func newDeadEventRow(d *event.Delivery) deadEventRow {
	row := deadEventRow{
		Webhook: string(d.Webhook), ID: string(d.Event), Type: string(d.Type), ServerName: d.Name.String(),
		Versions: "all",
		Attempts: d.Attempts, DeadSince: formatOptionalTime(d.EndedAt), Problem: d.Problem,
	}
	if version := d.Version.String(); version != "" {
		row.Version, row.Versions = &version, version
	}
	return row
}

// remoteWebhooks returns the webhooks of the API with their dead events.
func remoteWebhooks(r run) ([]webhookRow, error) {
	type shown struct {
		webhookRow

		State webhookRow `json:"state"` // what counts deliveries
	}
	type delivery struct {
		deadEventRow

		State string `json:"state"`
		Time  stamp  `json:"time"`
	}
	list, err := listOf[shown](r, at("webhooks"), "webhooks", nil)
	rows := make([]webhookRow, len(list))
	for i := 0; i < len(list) && err == nil; i++ {
		w, s := list[i].webhookRow, list[i].State
		w.Pending, w.Dead, w.LastSuccess, w.LastFailure = s.Pending, s.Dead, s.LastSuccess, s.LastFailure
		w.LastProblem, w.DeadEvents = s.LastProblem, []deadEventRow{}
		if u, err := event.ParseURL(w.URL); err == nil {
			w.Masked = u.Masked()
		}
		var attempts []delivery
		if w.Dead > 0 {
			attempts, err = listOf[delivery](r, at("webhooks", w.ID, "deliveries"), "deliveries", nil)
		}
		for _, d := range attempts {
			if d.State == string(event.Dead) {
				d.Webhook, d.DeadSince, d.Versions = w.ID, d.Time, "all"
				if d.Version != nil {
					d.Versions = *d.Version
				}
				w.DeadEvents = append(w.DeadEvents, d.deadEventRow)
			}
		}
		rows[i] = w
	}
	return rows, err
}
