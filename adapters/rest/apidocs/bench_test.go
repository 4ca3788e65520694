package apidocs_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
)

// BenchmarkNew measures the time that the documentation adds to the start of the service.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		apidocs.New().Mount(fiber.New())
	}
}

// BenchmarkFirstResponse measures the first request of the page, which compresses it.
func BenchmarkFirstResponse(b *testing.B) {
	for b.Loop() {
		app := fiber.New()
		apidocs.New().Mount(app)
		response, err := app.Test(httptest.NewRequest(http.MethodGet, "/docs", nil), -1)
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("response %v, error %v", response, err)
		}
	}
}
