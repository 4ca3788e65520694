package apidocs_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
)

// BenchmarkNew measures what the description adds to a start of the service.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		apidocs.New().Mount(fiber.New())
	}
}

// BenchmarkFirstAnswer measures how long who asks first waits for the page.
func BenchmarkFirstAnswer(b *testing.B) {
	for b.Loop() {
		app := fiber.New()
		apidocs.New().Mount(app)
		answer, err := app.Test(httptest.NewRequest(http.MethodGet, "/docs", nil), -1)
		if err != nil || answer.StatusCode != http.StatusOK {
			b.Fatalf("answer %v, error %v", answer, err)
		}
	}
}
