package methodsapi

import (
	"encoding/json"
	"encoding/xml"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/catalogue"
)

type envelope struct {
	XMLName xml.Name `json:"-" xml:"response"`
	Meta    meta     `json:"meta" xml:"meta"`
	Data    entries  `json:"data" xml:"data"`
}

// entries is a list that is written in XML also when it is empty.
type entries []entry

// MarshalXML writes one item element an entry.
func (l entries) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	list := struct {
		Items []entry `xml:"item"`
	}{l}
	if err := e.EncodeElement(list, start); err != nil {
		return fmt.Errorf("write data: %w", err)
	}
	return nil
}

type meta struct {
	Requests  *uint64             `json:"requests" xml:"requests"`
	Timestamp int64               `json:"timestamp" xml:"timestamp"`
	Status    int                 `json:"status" xml:"status"`
	Message   string              `json:"message" xml:"message"`
	MethodID  *catalogue.MethodID `json:"method_id" xml:"method_id"`
	Version   float64             `json:"version" xml:"version"`
	Method    struct{}            `json:"method" xml:"method"`
}

type entry struct {
	MethodID    catalogue.MethodID  `json:"method_id" xml:"method_id"`
	MethodURL   string              `json:"method_url" xml:"method_url"`
	ServiceID   catalogue.ServiceID `json:"service_id" xml:"service_id"`
	ServiceName string              `json:"service_name" xml:"service_name"`
	Parameters  []string            `json:"parameters" xml:"parameters>item"`
}

func entryOf(m catalogue.Method, base string) entry {
	return entry{
		MethodID: m.ID, MethodURL: base + m.Path,
		ServiceID: m.ServiceID, ServiceName: m.ServiceName,
		Parameters: append([]string{}, m.Parameters...),
	}
}

// write writes an envelope in the form the path asks for: XML for .xml, else
// JSON, wrapped in the callback when there is one.
func write(c *fiber.Ctx, e envelope, callback string) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if wantsXML(c) {
		return writeXML(c, e)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write envelope: %w", err)
	}
	if callback == "" {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSONCharsetUTF8)
		return c.Send(body)
	}
	// The leading comment keeps the answer from being read as anything but a
	// script, whatever the callback's name spells.
	c.Set(fiber.HeaderContentType, "application/javascript; charset=utf-8") // contract M-7
	return c.SendString("/**/" + callback + "(" + string(body) + ");")
}

func writeXML(c *fiber.Ctx, e envelope) error {
	body, err := xml.Marshal(e)
	if err != nil {
		return fmt.Errorf("write envelope: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationXMLCharsetUTF8)
	return c.SendString(xml.Header + string(body))
}
