package curationapi

import (
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
)

// quarantined is what is in quarantine, as the API shows it (contract C-20).
type quarantined struct {
	ServerName string  `json:"serverName"`
	Version    *string `json:"version"` // null for the whole server
	Reason     string  `json:"reason"`
	Since      string  `json:"since"`
	By         string  `json:"by"` // the id of a person, or "operator"
}

// QuarantinedJSON returns the answer of the API for an entry of quarantine.
func QuarantinedJSON(q registry.Quarantined) ([]byte, error) {
	b, err := json.Marshal(newQuarantined(q))
	if err != nil {
		return nil, fmt.Errorf("write an entry of quarantine as JSON: %w", err)
	}
	return b, nil
}

func newQuarantined(q registry.Quarantined) quarantined {
	shown := quarantined{
		ServerName: q.Name.String(), Reason: string(q.Reason), Since: formatTime(q.Since), By: describePerson(q.By),
	}
	if version := q.Version.String(); version != "" {
		shown.Version = &version
	}
	return shown
}

// quarantineList is a page of what is in quarantine.
type quarantineList struct {
	Quarantined []quarantined `json:"quarantined"`
	Metadata    metadata      `json:"metadata"`
}

func (a *API) addQuarantine(c *fiber.Ctx) error {
	added, err := a.ports.Quarantine.Add(c.UserContext(), newRequest(c), func() (quarantining.Draft, error) { return readDraft(c) })
	if err != nil {
		return err
	}
	return send(c, newQuarantined(added))
}

// readDraft reads the body of a request. The reason is checked later, after the permission.
func readDraft(c *fiber.Ctx) (quarantining.Draft, error) {
	body, err := jsonbody.Read(c)
	if err != nil {
		return quarantining.Draft{}, err
	}
	d := quarantining.Draft{
		Target: quarantining.Target{ServerName: body.Text("serverName"), Version: body.NullableText("version")},
		Reason: body.OptionalText("reason"),
	}
	return d, body.Err()
}

func (a *API) listQuarantine(c *fiber.Ctx) error {
	page, err := a.ports.Quarantine.List(c.UserContext(), newRequest(c), quarantining.Query{Cursor: c.Query("cursor"), Limit: c.Query("limit")})
	if err != nil {
		return err
	}
	list := quarantineList{make([]quarantined, len(page.Entries)), metadata{page.NextCursor, len(page.Entries)}}
	for i, q := range page.Entries {
		list.Quarantined[i] = newQuarantined(q)
	}
	return send(c, list)
}

func (a *API) releaseQuarantine(c *fiber.Ctx) error {
	err := a.ports.Quarantine.Release(c.UserContext(), newRequest(c), func() (quarantining.Target, error) { return readTarget(c) })
	if err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}

// readTarget reads the parameters of a request. An empty version counts as absent.
func readTarget(c *fiber.Ctx) (quarantining.Target, error) {
	name, err := queryText(c, "serverName")
	if err != nil {
		return quarantining.Target{}, err
	}
	if name == "" {
		return quarantining.Target{}, fault.New(fault.Invalid, "serverName is missing")
	}
	version, err := queryText(c, "version")
	return quarantining.Target{ServerName: name, Version: version}, err
}
