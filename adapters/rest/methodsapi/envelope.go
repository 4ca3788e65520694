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

// entries is a list. An empty list is an empty data element in XML.
type entries []entry

// MarshalXML writes an item element for each entry.
func (l entries) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	list := struct {
		Items []entry `xml:"item"`
	}{l}
	if err := e.EncodeElement(list, start); err != nil {
		return fmt.Errorf("encode data: %w", err)
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

func newEntry(m catalogue.Method, base string) entry {
	return entry{
		MethodID: m.ID, MethodURL: base + m.Path,
		ServiceID: m.ServiceID, ServiceName: m.ServiceName,
		Parameters: append([]string{}, m.Parameters...),
	}
}

// writeEnvelope writes an envelope as XML if the path ends in .xml, else as JSON, or as JSONP if
// there is a callback.
func writeEnvelope(c *fiber.Ctx, e envelope, callback string) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if wantsXML(c) {
		return writeXML(c, e)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode envelope: %w", err)
	}
	if callback == "" {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSONCharsetUTF8)
		return c.Send(body)
	}
	// The leading comment ensures that the response can only be read as a script, whatever the name
	// of the callback is.
	c.Set(fiber.HeaderContentType, "application/javascript; charset=utf-8") // contract M-7
	return c.SendString("/**/" + callback + "(" + string(body) + ");")
}

func writeXML(c *fiber.Ctx, e envelope) error {
	body, err := xml.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode envelope: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationXMLCharsetUTF8)
	return c.SendString(xml.Header + string(body))
}
