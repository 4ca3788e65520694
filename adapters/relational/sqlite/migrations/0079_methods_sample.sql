-- The embedded environment keeps the methods of the document.
SELECT 1;
