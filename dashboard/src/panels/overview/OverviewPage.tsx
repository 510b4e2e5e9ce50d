import { useLive } from "@/live";
import { Empty, Fact, Facts, Page, Section, shortNumber, wordsOf } from "@/ui";

export function Component() {
  const system = useLive({ kind: "system" }, "system");
  return (
    <Page title="Overview">
      <Section title="States">
        {system === undefined ? (
          <Empty title="Waiting for the first figures" />
        ) : (
          <Facts>
            {Object.entries(system.tasks).map(([state, count]) => (
              <Fact key={state} name={wordsOf(state)}>
                {shortNumber(count)}
              </Fact>
            ))}
          </Facts>
        )}
      </Section>
    </Page>
  );
}
