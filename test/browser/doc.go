// Package browser opens the pages of the service in a real browser and checks them for readers with
// eyes, keyboard or screen reader: no page loads anything from elsewhere, the console has no errors,
// text has enough contrast, headings and landmarks form an outline, and links lead to their targets.
// The tests of the packages that render the pages check the content.
//
// TEST_CHROMIUM names the browser, Chromium or Chrome; without it, the tests look for one under its
// usual names. TEST_PICTURES names a folder in which the tests save a screenshot of each view.
package browser
