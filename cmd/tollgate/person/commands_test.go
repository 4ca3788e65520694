package person_test

import (
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

func TestMain(m *testing.M) {
	if isPackage() {
		servePackage()
		return
	}
	fixture.Main(m)
}

// TestCommands runs the commands of transcripts at a service where ada may publish com.example/*. The
// transcripts have commands of operators too, which work on the database of the service.
func TestCommands(t *testing.T) {
	fixture.RunTranscripts(t, "commands", func(t *testing.T, s *fixture.Transcript) *fixture.Place {
		e := fixture.NewEnvironment(t, "embedded")
		e.Environ = append(e.Environ, append(fixture.RegistrySettings(), fixture.RiskPolicy("fast"))...)
		p := fixture.NewPlace(t, s, e)
		service, ada := e.Start(t), e.NewPerson(t, "ada@example.com", "publish com.example/*")
		p.Words = append(p.Words, "SERVICE", service.API, "PASSWORD", fixture.Password)
		p.Code = func() string { return e.LastCode(t, ada.Email) }
		e.Environ = append(e.Environ, "TOLLGATE_CREDENTIALS="+filepath.Join(e.Dir, "home", "credentials.json"))
		return p
	})
}
