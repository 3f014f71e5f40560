/** Whether a test pretends that the tab is hidden. */
declare var __hidden: boolean | undefined;
/** The accessibility checks, once they are in the page. */
declare var axe: { run(context: Document, options: object): Promise<{ violations: any[] }> };
