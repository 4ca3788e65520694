package site

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxFields is the greatest number of fields of a form.
const maxFields = 200

// readForm returns the fields of a form. The text of a file takes the place of the field with its
// name, if there is a file.
func readForm(c *fiber.Ctx) (url.Values, error) {
	media, parameters, err := mime.ParseMediaType(string(c.Request().Header.ContentType()))
	if err != nil && len(c.Body()) == 0 {
		return url.Values{}, nil
	}
	body := bytes.Clone(c.Request().Body())
	switch {
	case err == nil && media == fiber.MIMEApplicationForm:
		return parseURLEncoded(body)
	case err == nil && media == fiber.MIMEMultipartForm:
		return parseMultipart(body, parameters["boundary"])
	}
	return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "this is not a form")
}

func parseURLEncoded(body []byte) (url.Values, error) {
	if bytes.Count(body, []byte("&")) >= maxFields {
		return nil, errTooManyFields()
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errForm()
	}
	for _, values := range form {
		for i := range values {
			values[i] = newlines.Replace(values[i])
		}
	}
	return form, nil
}

func parseMultipart(body []byte, boundary string) (url.Values, error) {
	form := url.Values{}
	reader := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := reader.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && bytes.Contains(body, []byte("--"+boundary)):
			return form, nil
		case err != nil:
			return nil, errForm()
		case n == maxFields:
			return nil, errTooManyFields()
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, errForm()
		}
		switch name, value := part.FormName(), newlines.Replace(string(content)); {
		case name == "":
		case part.FileName() == "" && isFilePart(part):
			// A file field without a file.
		case isFilePart(part):
			form.Set(name, value)
		default:
			form.Add(name, value)
		}
	}
}

// isFilePart reports whether a part of a form is from a field for files. Browsers send such a part
// also if no file was chosen, with an empty file name.
func isFilePart(p *multipart.Part) bool {
	_, parameters, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	_, named := parameters["filename"]
	return err == nil && named
}

// newlines undoes what browsers do with the ends of lines in forms (HTML, form submission).
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func errForm() error { return fault.New(fault.Invalid, "the form cannot be read") }

func errTooManyFields() error { return fault.New(fault.Invalid, "the form has too many fields") }
