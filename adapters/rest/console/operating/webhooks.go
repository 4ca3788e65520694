package operating

import (
	"context"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
)

const (
	webhooksPath = Path + "/webhooks"
	webhookPath  = webhooksPath + "/:id"
)

var (
	webhooksPage = site.NewPage(templates, "templates/webhooks.html")
	webhookPage  = site.NewPage(templates, "templates/webhook.html")
)

// webhookInputs are the fields of a webhook.
var webhookInputs = []site.Input{
	{Name: "url", Label: "Address", Required: true, Hint: "Such as https://hooks.example.com/in. Its path may be secret."},
	{Name: "resource", Label: "Servers", Hint: "A name, a prefix such as com.example/*, or *. Empty for all."},
	{Name: "events", Label: "Events", Kind: "choices", Options: site.Options(event.Types()...)},
}

func (p *Pages) mountWebhooks(r fiber.Router) {
	p.open(r, webhooksPath, p.webhooks)
	p.site.Post(r, webhooksPath, 0, p.act("Add this webhook", p.addWebhook, p.webhooks))
	p.open(r, webhookPath, p.webhook)
	p.site.Post(r, webhookPath, 0, p.act("Save this webhook", p.changeWebhook, p.webhook))
	p.site.Post(r, webhookPath+"/test", 1, p.act("Send a test", p.testWebhook, p.tested))
	p.site.Post(r, webhookPath+"/redeliver", 2, p.act("Send the dead events again", p.redeliver, nil))
	p.site.Post(r, webhookPath+"/remove", 2, p.act("Remove this webhook", p.removeWebhook, nil))
}

// webhookRow is a webhook in words.
type webhookRow struct {
	notifying.Listed

	Address, Kinds, Path string
}

func newWebhookRow(w notifying.Listed) webhookRow {
	return webhookRow{w, w.URL.Masked(), strings.Join(w.Draft().Events, ", "), webhooksPath + "/" + string(w.ID)}
}

// webhooksView is the page with the webhooks.
type webhooksView struct {
	Webhooks []webhookRow
	Add      site.FormView
}

func (p *Pages) webhooks(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Webhooks.List(ctx)
	if err != nil {
		return err
	}
	page := webhooksView{Webhooks: make([]webhookRow, len(all))}
	for i, w := range all {
		page.Webhooks[i] = newWebhookRow(w)
	}
	page.Add = v.Fill(site.Form{Action: webhooksPath, Button: "Add this webhook", Inputs: webhookInputs}, nil, problems)
	return v.Render(webhooksPage, newHead(v, "Webhooks", problems, page.Add), page)
}

// shownDeliveries is the number of deliveries on the page of a webhook.
const shownDeliveries = 20

// webhookView is the page of a webhook. Its list of deliveries, with the answer to each and a way to
// send it again, is that of the webhooks of GitHub.
type webhookView struct {
	webhookRow

	Change     site.FormView
	Deliveries []event.Delivery
}

func (p *Pages) webhook(ctx context.Context, v *site.Visit, problems site.Problems) error {
	id := key[event.WebhookID](v, "id")
	deliveries, err := p.ports.Webhooks.History(ctx, id)
	if err != nil {
		return err
	}
	all, err := p.ports.Webhooks.List(ctx)
	if err != nil {
		return err
	}
	w := registry.FindIn(all, func(w *notifying.Listed) bool { return w.ID == id })
	if w == nil {
		return fault.New(fault.NotFound, "there is no webhook with this id")
	}
	setConflict(v, problems, w.ManagedBy)
	page := webhookView{webhookRow: newWebhookRow(*w), Deliveries: deliveries[:min(len(deliveries), shownDeliveries)]}
	stored := url.Values{"url": {w.URL.String()}, "resource": {w.Pattern.String()}, "events": w.Draft().Events}
	page.Change = v.Fill(site.Form{Action: page.Path, Button: "Save this webhook", Inputs: webhookInputs}, stored, problems)
	return v.Render(webhookPage, newHead(v, "Webhook of "+w.URL.Host(), problems, page.Change), page)
}

// webhookDraft returns the webhook that a form describes.
func webhookDraft(v *site.Visit) event.Draft {
	return event.Draft{URL: v.Trimmed("url"), Events: v.Form["events"], Pattern: v.Trimmed("resource")}
}

func managerOfWebhook(w *event.Webhook) string { return w.ManagedBy }

func (p *Pages) addWebhook(ctx context.Context, v *site.Visit) error {
	w, secret, err := p.ports.Webhooks.Add(ctx, webhookDraft(v))
	if err != nil {
		return err
	}
	return v.ShowOnce(site.Secret{
		Title: "The secret of the webhook of " + w.URL.Host(), Value: string(secret),
		Hint: "The receiver checks the signature of each request with it.",
		Back: site.Link{Text: "The webhook of " + w.URL.Host(), Path: webhooksPath + "/" + string(w.ID)},
	})
}

func (p *Pages) changeWebhook(ctx context.Context, v *site.Visit) error {
	draft := webhookDraft(v)
	_, err := p.ports.Webhooks.Change(ctx, key[event.WebhookID](v, "id"),
		func(event.Draft) event.Draft { return draft }, byHand(managerOfWebhook))
	return v.Done(err, v.Path(), "saved")
}

func (p *Pages) testWebhook(ctx context.Context, v *site.Visit) error {
	id := key[event.WebhookID](v, "id")
	status, err := p.ports.Webhooks.Test(ctx, id)
	if fault.Is(err, fault.Unavailable) { // the receiver is, not this service
		err = fault.New(fault.Conflict, fault.PublicMessage(err))
	}
	if err == nil && status/100 != 2 {
		err = fault.Newf(fault.Conflict, "the receiver has answered with the status %d", status)
	}
	return v.Done(err, webhooksPath+"/"+string(id), "tested")
}

// tested shows the page of a webhook whose receiver has not accepted a test.
func (p *Pages) tested(ctx context.Context, v *site.Visit, problems site.Problems) error {
	if len(problems) > 0 {
		v.Status(fiber.StatusConflict)
	}
	return p.webhook(ctx, v, problems)
}

func (p *Pages) redeliver(ctx context.Context, v *site.Visit) error {
	_, err := p.ports.Webhooks.Redeliver(ctx, key[event.WebhookID](v, "id"), event.ID(v.Form.Get("event")))
	return v.Done(err, webhooksPath, "redelivered")
}

func (p *Pages) removeWebhook(ctx context.Context, v *site.Visit) error {
	err := p.ports.Webhooks.Remove(ctx, key[event.WebhookID](v, "id"), byHand(managerOfWebhook))
	return v.Done(err, webhooksPath, "webhook")
}
